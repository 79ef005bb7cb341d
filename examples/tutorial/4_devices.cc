// Tutorial, chapter 4: several devices. Adds up the columns of a long table. Each block of rows goes to the device that
// will be free first, and at the end the sums of all devices are added.
//
// docs/tutorial/4-devices.md explains the program. PENSTOCK_DEVICES=host:3 runs it on three host devices.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kColumns = 512, kRows = 5000, kBlock = 64;  // 79 blocks of rows, of which the last is shorter

// Adds the rows of a block to the sum of one column.
struct AddRows {
  PS_HOST_DEVICE void operator()(int64_t column, int64_t rows, ps::View<const float> table, float* sum) const {
    for (int64_t row = 0; row < rows; ++row) sum[column] += table(row, column);
  }
};
struct Plus {
  PS_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};

absl::Status Tutorial() {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());

  // Each device has its own sums.
  PS_ASSIGN_OR_RETURN(auto sums, runtime.MakeReplicatedState<float>("sums", kColumns));

  // The graph for one block. Its number of rows is a parameter, with a maximum that sizes the memory.
  ps::Graph block("block");
  auto rows = block.Param<int64_t>("rows", ps::AtMost(kBlock));
  auto table = block.Input<float>("table", {rows, kColumns});
  block.ParallelFor("add rows", kColumns, AddRows{}, rows, ps::Read(table), ps::ReadWrite(sums));

  // It is compiled for all devices, with two slots on each.
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(block, {.slots = 2, .devices = runtime.all_devices()}));

  // The table is in pinned memory, from which GPUs copy at full speed.
  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> data, runtime.MakeHostBuffer<float>(kRows * kColumns));
  for (int64_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i / kColumns % 10 + i % kColumns);

  // Each launch takes a free slot of one of the devices, and waits while there is none.
  ps::Bindings io = exec.bindings();
  std::vector<ps::Run> runs;
  for (int64_t begin = 0; begin < kRows; begin += kBlock) {
    const int64_t height = std::min(kBlock, kRows - begin);
    io.Set(rows, height).Set(table, std::span(&data[begin * kColumns], height * kColumns));
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));
    runs.push_back(run);
  }

  // Add the sums of the other devices to those of device 0, after all runs that change them.
  ps::Graph total("total");
  ps::Reduce(total, "add", sums, Plus{}, /*into=*/0);
  PS_ASSIGN_OR_RETURN(ps::Executable reducer, runtime.Compile(total));
  PS_ASSIGN_OR_RETURN(ps::Run reduction, reducer.Launch());
  runs.push_back(reduction);
  for (const ps::Run& run : runs) PS_RETURN_IF_ERROR(run.Wait());
  std::vector<float> result(kColumns);
  PS_RETURN_IF_ERROR(sums.On(0).Read(result));

  for (const int device : exec.devices()) {
    PS_ASSIGN_OR_RETURN(const ps::Executable part, exec.On(device));
    std::printf("%s added %d blocks\n", runtime.devices()[device].name.c_str(), static_cast<int>(part.launches()));
  }

  // Down each column the digits 0 to 9 repeat, and every element also has the number of its column.
  for (int64_t column = 0; column < kColumns; ++column) {
    if (result[column] != static_cast<float>(kRows / 10 * 45 + kRows * column)) {
      return absl::InternalError("the sum of column " + std::to_string(column) + " is wrong");
    }
  }
  std::printf("the sums of all columns are right; that of column 3 is %g\n", result[3]);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Tutorial();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

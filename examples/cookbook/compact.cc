// Cookbook: a result whose size the device finds out. Keeps the positive ones of many values, in their order: a run
// leaves them on the device and returns their number, and so many of them are read.
//
// docs/howto/cookbook/compact.md explains the program.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kN = 100'000, kBlock = 128, kBlocks = (kN + kBlock - 1) / kBlock;

PS_HOST_DEVICE inline bool Keeps(float value) { return value > 0; }

// Block b is the elements b * kBlock to its end. The first pass counts what each block keeps, the second finds where it
// goes, and the third puts it there.
struct Count {
  PS_HOST_DEVICE void operator()(int64_t block, const float* values, int32_t* counts) const {
    counts[block] = 0;
    for (int64_t i = block * kBlock; i < kN && i < (block + 1) * kBlock; ++i) counts[block] += Keeps(values[i]) ? 1 : 0;
  }
};
struct Place {
  PS_HOST_DEVICE void operator()(int64_t, const int32_t* counts, int32_t* begins, int32_t* count) const {
    int32_t sum = 0;
    for (int64_t block = 0; block < kBlocks; ++block) {
      begins[block] = sum;
      sum += counts[block];
    }
    *count = sum;
  }
};
struct Gather {
  PS_HOST_DEVICE void operator()(int64_t block, const float* values, const int32_t* begins, float* kept) const {
    int64_t to = begins[block];
    for (int64_t i = block * kBlock; i < kN && i < (block + 1) * kBlock; ++i) {
      if (Keeps(values[i])) kept[to++] = values[i];
    }
  }
};

absl::Status Cookbook() {
  std::vector<float> data(kN), expected, result;
  for (int64_t i = 0; i < kN; ++i) data[i] = static_cast<float>(i * i % 1000 - 800);
  for (const float value : data) {
    if (Keeps(value)) expected.push_back(value);
  }
  int32_t size = 0;
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(auto kept, runtime.MakeState<float>("kept", kN));

  // The number of kept values is an output. They themselves stay in a State, which has room for all.
  ps::Graph compact("compact");
  auto values = compact.Input<float>("values", kN);
  auto counts = compact.Buffer<int32_t>("counts", kBlocks);
  auto begins = compact.Buffer<int32_t>("begins", kBlocks);
  auto count = compact.Output<int32_t>("count", 1);
  compact.ParallelFor("count", kBlocks, Count{}, ps::Read(values), ps::Write(counts));
  compact.ParallelFor("place", 1, Place{}, ps::Read(counts), ps::Write(begins), ps::Write(count));
  compact.ParallelFor("gather", kBlocks, Gather{}, ps::Read(values), ps::Read(begins), ps::WriteSome(kept));
  PS_ASSIGN_OR_RETURN(ps::Executable compacter, runtime.Compile(compact));

  ps::Bindings io = compacter.bindings();
  PS_ASSIGN_OR_RETURN(ps::Run run, compacter.Launch(io.Set(values, data).Set(count, size)));
  PS_RETURN_IF_ERROR(run.Wait());
  result.resize(size);
  PS_RETURN_IF_ERROR(kept.Read(result, ps::Slice(0, size)));
  std::printf("%d of %d values are positive\n", size, static_cast<int>(kN));
  return result == expected ? absl::OkStatus() : absl::InternalError("other values were kept");
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

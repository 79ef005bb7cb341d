// Tutorial, chapter 2: a State. One graph adds up batches of measurements in device memory, run after run. Another
// graph computes the mean of what is there.
//
// docs/tutorial/2-state.md explains the program.
#include <cstdio>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int kSensors = 256, kBatches = 20;

struct Add {
  PS_HOST_DEVICE void operator()(int64_t i, const float* batch, float* sum) const { sum[i] += batch[i]; }
};
struct Divide {
  PS_HOST_DEVICE void operator()(int64_t i, float count, const float* sum, float* mean) const {
    mean[i] = sum[i] / count;
  }
};

// What a sensor measures at one time. The values are small integers, so float sums of them are exact.
int Measure(int time, int sensor) { return (time * 31 + sensor * 7) % 64; }

// The expected mean, computed independently on the host.
float ExpectedMean(int begin, int sensor) {
  int sum = 0;
  for (int time = begin; time < begin + kBatches; ++time) sum += Measure(time, sensor);
  return static_cast<float>(sum) / kBatches;
}

absl::Status Tutorial() {
  // Memory that runs use must outlive them. The runtime waits for its runs when it is destroyed, which is before these.
  std::vector<std::vector<float>> batches(kBatches, std::vector<float>(kSensors));
  std::vector<float> means(kSensors), sums(kSensors);
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());

  // A State is device memory that outlives a run. It starts as zeros.
  PS_ASSIGN_OR_RETURN(ps::State<float> sum, runtime.MakeState<float>("sum", kSensors));

  // The first graph changes the State ...
  ps::Graph add("add");
  auto batch = add.Input<float>("batch", kSensors);
  add.ParallelFor("add", kSensors, Add{}, ps::Read(batch), ps::ReadWrite(sum));
  PS_ASSIGN_OR_RETURN(ps::Executable adder, runtime.Compile(add, {.slots = 3}));

  // ... and the second graph reads it.
  ps::Graph divide("divide");
  auto count = divide.Param<float>("count");
  auto mean = divide.Output<float>("mean", kSensors);
  divide.ParallelFor("divide", kSensors, Divide{}, count, ps::Read(sum), ps::Write(mean));
  PS_ASSIGN_OR_RETURN(ps::Executable divider, runtime.Compile(divide));

  ps::Bindings in = adder.bindings(), out = divider.bindings();
  for (const int begin : {0, 100}) {
    // Launch a run for each batch, without waiting for any of them.
    std::vector<ps::Run> runs;
    for (int b = 0; b < kBatches; ++b) {
      for (int sensor = 0; sensor < kSensors; ++sensor) {
        batches[b][sensor] = static_cast<float>(Measure(begin + b, sensor));
      }
      PS_ASSIGN_OR_RETURN(ps::Run run, adder.Launch(in.Set(batch, batches[b])));
      runs.push_back(run);
    }

    // This run is launched last, so it reads the State after all the others have changed it.
    PS_ASSIGN_OR_RETURN(ps::Run last, divider.Launch(out.Set(count, kBatches).Set(mean, means)));
    runs.push_back(last);
    for (const ps::Run& run : runs) PS_RETURN_IF_ERROR(run.Wait());
    for (int sensor = 0; sensor < kSensors; ++sensor) {
      if (means[sensor] != ExpectedMean(begin, sensor)) {
        return absl::InternalError("the mean of sensor " + std::to_string(sensor) + " is wrong");
      }
    }

    // The host can read the State, and set it back to zeros for the next round.
    PS_RETURN_IF_ERROR(sum.Read(sums));
    PS_RETURN_IF_ERROR(sum.Reset());
    std::printf("%d batches from time %d on: sensor 5 has sum %g and mean %g\n", kBatches, begin, sums[5], means[5]);
  }
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Tutorial();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

// Tutorial, chapter 3: a pipeline. Host threads unpack recordings, the device smooths them, and another host thread
// finds their peaks, all at the same time.
//
// docs/tutorial/3-pipeline.md explains the program.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/ps.h"

constexpr int kSamples = 4096;
constexpr int kRecordings = 100, kDamaged = 13;  // recording number 13 is too short

// One item on its way through the pipeline.
struct Recording {
  int number = 0;
  std::vector<int8_t> packed;  // the difference between each sample and the one before it
  std::vector<float> samples, smooth;
  int64_t peak = -1;
};

// The recordings are made up, so their peaks are known: a hill with its top at PeakOf(number), and on it a saw-tooth of
// period 3, which the mean of three neighbours removes.
int64_t PeakOf(int number) { return 100 + number * 37; }
Recording Record(int number) {
  Recording recording;
  recording.number = number;
  int64_t before = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t sample = std::max<int64_t>(0, 90 - std::abs(i - PeakOf(number))) + i % 3 * 10;
    recording.packed.push_back(static_cast<int8_t>(sample - before));
    before = sample;
  }
  if (number == kDamaged) recording.packed.resize(kSamples / 2);
  return recording;
}

// Host stages are functions of an item.
absl::Status Unpack(Recording& recording) {
  if (recording.packed.size() != kSamples) return absl::DataLossError("the recording is too short");
  float sample = 0;
  for (const int8_t step : recording.packed) recording.samples.push_back(sample += step);
  recording.smooth.resize(kSamples);
  return absl::OkStatus();
}
void FindPeak(Recording& recording) {
  recording.peak = std::max_element(recording.smooth.begin(), recording.smooth.end()) - recording.smooth.begin();
}

// The stage on the device is a graph.
struct Smooth {
  PS_HOST_DEVICE void operator()(int64_t i, const float* in, float* out) const {
    out[i] = i == 0 || i == kSamples - 1 ? 0 : (in[i - 1] + in[i] + in[i + 1]) / 3;
  }
};

absl::Status Tutorial() {
  ps::Graph graph("smooth");
  auto in = graph.Input<float>("in", kSamples);
  auto out = graph.Output<float>("out", kSamples);
  graph.ParallelFor("smooth", kSamples, Smooth{}, ps::Read(in), ps::Write(out));
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = 3}));

  // The stages, in the order in which each item passes them.
  ps::Stages<Recording> stages;
  stages.Host("unpack", Unpack, {.workers = 2});
  stages.Run("smooth", exec, [&](ps::Item<Recording>& item) { item.Set(in, item->samples).Set(out, item->smooth); });
  stages.Host("find peak", FindPeak);
  PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<Recording>::Create(std::move(stages), {.window = 8}));

  // The source makes items until there are no more. The sink gets them in the same order, when they have passed all
  // stages or failed.
  int made = 0, seen = 0, right = 0;
  const auto source = [&]() -> std::optional<Recording> {
    if (made == kRecordings) return std::nullopt;
    return Record(made++);
  };
  const auto sink = [&](ps::Item<Recording>& item) {
    const absl::Status status = item.status();
    if (!status.ok()) std::printf("recording %d: %s\n", item->number, status.ToString().c_str());
    const bool expected =
        item->number == kDamaged ? absl::IsDataLoss(status) : status.ok() && item->peak == PeakOf(item->number);
    if (expected && item->number == seen) ++right;
    ++seen;
  };
  PS_RETURN_IF_ERROR(pipe.Run(source, sink));

  std::printf("%d recordings, at most %d at a time: %d as expected\n", seen, pipe.window(), right);
  return right == kRecordings ? absl::OkStatus() : absl::InternalError("some recordings are wrong");
}

int main() {
  const absl::Status status = Tutorial();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

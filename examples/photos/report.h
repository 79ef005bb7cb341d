// What the job took: spans of its five steps, summed up and printed as the table at its end.
//
// Threads: plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "intervals.h"

namespace photos {

// In the order of a picture's way.
enum class Step : uint8_t { kDecode, kUpload, kCompute, kDownload, kEncode };
inline constexpr int kSteps = 5;

// One piece of work, on any one clock that all spans share. `device` counts from 0; host steps leave it 0.
struct Span {
  Step step = Step::kDecode;
  int device = 0;
  Interval time;
};

// A job as it was measured. Bytes are those of pixels; times in nanoseconds.
struct Measurement {
  int64_t images = 0;
  int64_t bytes_up = 0;
  int64_t bytes_down = 0;
  int64_t wall_ns = 0;
  int64_t traced_images = 0;  // the first of them, which `spans` are about
  int64_t traced_ns = 0;      // how long those took
  int64_t worker_cpu_ns = 0;  // CPU time of the threads that decode and encode
  int workers = 1;
  std::vector<Span> spans;
};

struct StepTotal {
  double seconds = 0;  // summed over the threads or engines that did it
  double share = 0;    // of the seconds of all five steps
  double busy = 0;     // of the traced time: while at least one was at it
};

struct Summary {
  int64_t images = 0;
  int64_t traced_images = 0;  // the steps and the hidden share are about these
  double megabytes_up = 0;  // 10^6 bytes
  double megabytes_down = 0;
  double seconds = 0;
  std::array<StepTotal, kSteps> steps;
  double hidden_share = 0;  // of copy time, summed over devices; see CopyTime
  double images_per_second = 0;
  int workers = 1;
  double worker_cpu_per_image = 0;  // seconds
  double worker_bound = 0;          // images a second that `workers` threads could reach at that cost; 0: no cost
};

Summary Summarize(const Measurement& measurement);

// A column of the table.
struct Column {
  std::string title;
  Summary summary;
};

// One line a row, each ended by a newline. With two columns a last line gives the ratio of images a second, first to
// second.
std::string FormatTable(const std::vector<Column>& columns);

// The line shown while the job runs, without a newline: "12/700 images, 1 skipped, 245.1 images/s".
std::string FormatProgress(int64_t done, int64_t total, int64_t skipped, double seconds);

}  // namespace photos

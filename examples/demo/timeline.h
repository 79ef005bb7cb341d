// Timelines: which frame each step of a job was at when, as text for a terminal and as an SVG picture.
//
// Threads: pure functions on plain values.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "penstock/trace.h"

// The steps of a frame, in order: two on host threads, and three on the device between them.
enum Step { kDecode, kCopyIn, kDenoise, kCopyOut, kEncode, kSteps };
inline constexpr std::array<const char*, kSteps> kStepNames = {"decode", "copy in", "denoise", "copy out", "encode"};

// One step of one frame. Microseconds of any one clock.
struct Work {
  int frame;
  double begin, end;
};

struct Job {
  std::string title;
  double begin = 0, end = 0;                     // of the whole job
  std::array<std::vector<Work>, kSteps> works;  // of each step in the order in which they began
  double Busy(Step step) const;                  // the share of the job's time in which a frame was at the step
  double FrameMicros() const;                    // the job's time over the number of its frames
};

// What the trace has from `begin` on. Host spans have a step's name and the number of their frame; those of the device
// have that of the launch, and launched[n] is the frame of launch n.
Job JobOf(const penstock::Trace& trace, const std::vector<int>& launched, double begin);

// The same length of time from the middle of each job. A row is a step; in the text a digit is the last one of the
// number of the frame that was begun last, in the picture a row has a line for each frame at the step.
std::string TimelineText(const std::vector<Job>& jobs);
std::string TimelineSvg(const std::vector<Job>& jobs);

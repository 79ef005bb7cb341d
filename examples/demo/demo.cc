// A camera's frames are decoded on the host, denoised on a device and encoded on the host again: first one frame after
// the other, then as a pipeline. Both use the same code, and every result is checked. Prints both rates, a timeline of
// each and what they mean; --svg draws the timelines as a picture.
//
//   demo [--svg FILE] [--devices host] [--height 720] [--seconds 0.8]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "codec.h"
#include "penstock/ps.h"
#include "timeline.h"

// Each pixel of a square window pulls the one in its middle towards itself, but not by more than 100: noise goes, edges
// stay.
struct Denoise {
  int radius;
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint16_t> in, ps::View<uint16_t> out) const {
    const int64_t top = i.y < radius ? 0 : i.y - radius, left = i.x < radius ? 0 : i.x - radius;
    const int64_t bottom = i.y + radius < in.height ? i.y + radius : in.height - 1;
    const int64_t right = i.x + radius < in.width ? i.x + radius : in.width - 1;
    const int here = in(i.y, i.x);
    int pull = 0;
    for (int64_t y = top; y <= bottom; ++y) {
      for (int64_t x = left; x <= right; ++x) {
        const int apart = in(y, x) - here;
        pull += apart > 100 ? 100 : apart < -100 ? -100 : apart;
      }
    }
    const int side = 2 * radius + 1;
    out(i.y, i.x) = static_cast<uint16_t>(here + pull / (side * side));
  }
};

struct Options {
  std::string devices, svg;
  double seconds = 0.8;  // a round
  int height = 0;  // 0: as the device is
};

class Demo {
 public:
  // `threads` decode and as many encode in the pipeline.
  Demo(int height, int radius, int threads, ps::Runtime* runtime)
      : height_(height),
        threads_(threads),
        runtime_(*runtime),
        denoise_{radius},
        noisy_(graph_.Input<uint16_t>("noisy", {height_, width_}, ps::kSlot)),  // pinned memory of the slot's own
        clean_(graph_.Output<uint16_t>("clean", {height_, width_}, ps::kSlot)) {
    graph_.ParallelFor("denoise", {height_, width_}, denoise_, ps::Read(noisy_), ps::Write(clean_));
  }

  int64_t width() const { return width_; }

  // Compiles the graph for both jobs, learns what comes out of a frame of each kind, and compares it with a plain loop.
  absl::Status Prepare() {
    PS_ASSIGN_OR_RETURN(serial_.exec, runtime_.Compile(graph_, {.slots = 1, .trace = serial_.trace}));
    PS_ASSIGN_OR_RETURN(pipelined_.exec,
                        runtime_.Compile(graph_, {.slots = 2 * threads_ + 4, .trace = pipelined_.trace}));
    PS_ASSIGN_OR_RETURN(ps::Lease slot, serial_.exec.Acquire());
    for (int kind = 0; kind < Camera::kKinds; ++kind) {
      PS_RETURN_IF_ERROR(DecodeAndDenoise(kind, slot));
      if (!EqualsPlainLoop(slot)) return absl::InternalError("the device and a plain loop differ");
      hashes_.push_back(Hash(Encode(slot.span(clean_), width_)));
    }
    return Pipelined(0).status();
  }

  // Each frame is decoded, denoised and encoded before the next is begun.
  absl::StatusOr<Job> OneByOne(double seconds) {
    PS_ASSIGN_OR_RETURN(ps::Lease slot, serial_.exec.Acquire());
    const double begin = serial_.trace->Now();
    for (int frame = 0; GoesOn(serial_, frame, begin, seconds); ++frame) {
      PS_RETURN_IF_ERROR(DecodeAndDenoise(frame, slot));
      PS_RETURN_IF_ERROR(EncodeAndCheck(serial_, frame, slot.span(clean_)));
    }
    return JobOf(*serial_.trace, serial_.launched, begin);
  }

  // The same work, on as many frames at once as there is something to do for.
  absl::StatusOr<Job> Pipelined(double seconds) {
    const auto decode = [this](ps::Item<int>& frame) { DecodeInto(pipelined_, frame.value(), frame.span(noisy_)); };
    const auto encode = [this](ps::Item<int>& frame) {
      return EncodeAndCheck(pipelined_, frame.value(), frame.span(clean_));
    };
    ps::Stages<int> stages;
    stages.Host("decode", decode, {.workers = threads_});
    stages.Run("denoise", pipelined_.exec, [this](int& frame) { pipelined_.launched.push_back(frame); });
    stages.Host("encode", encode, {.workers = threads_});
    PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<int>::Create(std::move(stages), {.on_error = ps::kFail}));
    const double begin = pipelined_.trace->Now();
    const auto next = [&, frame = 0]() mutable {
      return GoesOn(pipelined_, frame, begin, seconds) ? std::optional(frame++) : std::nullopt;
    };
    PS_RETURN_IF_ERROR(pipe.Run(next, [](ps::Item<int>&) {}));
    return JobOf(*pipelined_.trace, pipelined_.launched, begin);
  }

 private:
  struct Side {
    ps::Executable exec;
    std::shared_ptr<ps::Trace> trace = ps::Trace::Create();
    std::vector<int> launched;  // the frame of each launch
  };

  static bool GoesOn(const Side& side, int frame, double begin, double seconds) {
    return frame < 12 || side.trace->Now() < begin + 1e6 * seconds;
  }

  void DecodeInto(Side& side, int frame, std::span<uint16_t> pixels) const {
    Traced(*side.trace, kDecode, frame, [&] { Decode(camera_.Frame(frame), pixels, width_); });
  }

  absl::Status DecodeAndDenoise(int frame, ps::Lease& slot) {
    DecodeInto(serial_, frame, slot.span(noisy_));
    serial_.launched.push_back(frame);
    PS_ASSIGN_OR_RETURN(const ps::Run run, slot.Launch(serial_.exec.bindings()));
    return run.Wait();
  }

  absl::Status EncodeAndCheck(Side& side, int frame, std::span<const uint16_t> pixels) const {
    uint64_t hash = 0;
    Traced(*side.trace, kEncode, frame, [&] { hash = Hash(Encode(pixels, width_)); });
    return hash == hashes_[static_cast<size_t>(frame % Camera::kKinds)]
               ? absl::OkStatus()
               : absl::InternalError(absl::StrFormat("the result of frame %d is wrong", frame));
  }

  template <class F>
  static void Traced(ps::Trace& trace, Step step, int frame, F work) {
    ps::Span span;
    span.name = kStepNames[step];
    span.run = frame;
    span.begin_us = trace.Now();
    work();
    span.end_us = trace.Now();
    trace.Add(std::move(span));
  }

  // Every 64th row.
  bool EqualsPlainLoop(const ps::Lease& slot) const {
    const int64_t h = height_, w = width_;
    const ps::View<const uint16_t> noisy = {slot.span(noisy_).data(), 1, h, w, w, h * w};
    std::vector<uint16_t> expected(static_cast<size_t>(h * w));
    for (int64_t y = 0; y < h; y += 64) {
      for (int64_t x = 0; x < w; ++x) denoise_({y, x}, noisy, {expected.data(), 1, h, w, w, h * w});
      const auto row = expected.begin() + y * w;
      if (!std::equal(row, row + w, slot.span(clean_).begin() + y * w)) return false;
    }
    return true;
  }

  const int64_t height_, width_ = height_ / 9 * 16;
  const int threads_;
  ps::Runtime& runtime_;
  const Camera camera_{height_, width_};
  const Denoise denoise_;
  ps::Graph graph_{"demo"};
  const ps::BufferHandle<uint16_t> noisy_, clean_;
  Side serial_, pipelined_;
  std::vector<uint64_t> hashes_;  // of the result of each kind of frame
};

constexpr char kWhatItMeans[] = R"(
Shown is the best of %d rounds of each job. All results are the same, and a plain loop agrees.
One frame after the other, the device waits while the host decodes and encodes: it denoises %.0f %% of
the time. In the pipeline the host works on other frames meanwhile: the device denoises %.0f %% of the
time, and %.2f times as many frames a second are done.
)";
constexpr char kOnGpu[] =
    R"(Copies and kernels of different frames overlap on the GPU. On the host, %d threads decode and as
many encode, where one thread did both. That is most of the gain, and it keeps the GPU from waiting.
)";
constexpr char kOnHost[] =
    R"(There is no GPU here: CPU threads stand in for one, and the gain is that more cores are busy. On two
cores it can be about 2; other programs that use them change both rates. On a GPU, copies and
kernels take none of the host's time, and copies overlap kernels too.
)";
constexpr char kNotAlone[] = R"(
Other programs used the cores meanwhile, so the rates are low, and their ratio may be off.
)";

absl::Status RunDemo(Options options) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PS_ASSIGN_OR_RETURN(auto runtime,
                      ps::Runtime::Create({.devices = options.devices, .host_device_threads = std::max(1, cores / 2)}));
  const ps::Device& device = runtime.devices()[0];
  const int threads = std::clamp(device.is_cuda ? (cores - 2) / 2 : cores / 4, 1, 16);
  if (options.height == 0) options.height = device.is_cuda ? 1440 : 720;
  Demo demo(options.height, device.is_cuda ? 24 : 1, threads, &runtime);
  absl::PrintF("Frames of %d x %d are decoded on the host, denoised on %s and encoded on the host.\n", demo.width(),
               options.height, device.is_cuda ? device.description : "CPU threads that stand in for a GPU");
  absl::PrintF("In the timelines a row is a step and a digit is a frame: the last digit of its number.\n");
  std::fflush(stdout);

  // By turns, since other programs come and go.
  constexpr int kRounds = 5;
  PS_RETURN_IF_ERROR(demo.Prepare());
  Job serial, pipelined;
  double cpu = 0, wall = 0;  // of the serial rounds, microseconds
  for (int round = 0; round < kRounds; ++round) {
    const std::clock_t before = std::clock();
    PS_ASSIGN_OR_RETURN(Job one_by_one, demo.OneByOne(options.seconds));
    cpu += 1e6 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    wall += one_by_one.end - one_by_one.begin;
    PS_ASSIGN_OR_RETURN(Job at_once, demo.Pipelined(options.seconds));
    if (round == 0 || one_by_one.FrameMicros() < serial.FrameMicros()) serial = std::move(one_by_one);
    if (round == 0 || at_once.FrameMicros() < pipelined.FrameMicros()) pipelined = std::move(at_once);
  }
  serial.title = absl::StrFormat("One frame after the other: %.1f frames a second", 1e6 / serial.FrameMicros());
  pipelined.title = absl::StrFormat("Pipelined: %.1f frames a second", 1e6 / pipelined.FrameMicros());
  absl::PrintF("%s", TimelineText({serial, pipelined}));
  absl::PrintF(kWhatItMeans, kRounds, 100 * serial.Busy(kDenoise), 100 * pipelined.Busy(kDenoise),
               serial.FrameMicros() / pipelined.FrameMicros());
  device.is_cuda ? absl::PrintF(kOnGpu, threads) : absl::PrintF(kOnHost);
  // Alone, one thread after the other has a core all the time.
  if (!device.is_cuda && cpu < 0.9 * wall) absl::PrintF(kNotAlone);
  if (options.svg.empty()) return absl::OkStatus();
  if (!(std::ofstream(options.svg) << TimelineSvg({serial, pipelined})).flush()) {
    return absl::UnavailableError("cannot write " + options.svg);
  }
  absl::PrintF("\nThe timelines as a picture: %s\n", options.svg);
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--svg") options.svg = value;
    else if (name == "--devices") options.devices = value;
    else if (name == "--seconds") options.seconds = std::atof(value);
    else if (name == "--height" && std::atoi(value) >= 9) options.height = std::atoi(value);
    else return std::fprintf(stderr, "demo: not understood: %s %s\n", argv[i], value), 2;
  }
  const absl::Status status = RunDemo(options);
  if (!status.ok()) std::fprintf(stderr, "demo: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

// Cameras over all devices: each frame is compared with its camera's own background, which a State by key remembers on
// the device where that camera's frames go. Frames are filled and results read in place; what comes too fast drops the
// oldest frame, and one that is too late says so. The cameras are made up: a bright square moves over a still picture.
//
//   cameras [--devices cuda | host:2] [--cameras 4] [--frames 300] [--every-us 1000] [--deadline-ms 40]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kMaxH = 480, kMaxW = 640;
constexpr int64_t kSquare = 16;

// The background in 1/16 of a grey; it follows slowly what it sees.
struct Subtract {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint8_t> raw, ps::View<uint16_t> background,
                                 ps::View<uint8_t> moving) const {
    const int now = raw(i.y, i.x) * 16 + 1;  // 0: nothing has been seen
    const int before = background(i.y, i.x) == 0 ? now : background(i.y, i.x);
    const int apart = now - before;
    moving(i.y, i.x) = (apart < 0 ? -apart : apart) > 60 * 16 ? 255 : 0;
    background(i.y, i.x) = static_cast<uint16_t>(before + apart / 16);
  }
};

struct Options {
  std::string devices;
  int cameras = 4, frames = 300, every_us = 1000, deadline_ms = 40;
};

// Where the square of a frame begins; each camera's has a way of its own.
int64_t SquareX(uint64_t camera, uint64_t frame, int64_t w) {
  return static_cast<int64_t>((frame * (3 + camera) + 40 * camera) % static_cast<uint64_t>(w - kSquare));
}
void Expose(uint64_t camera, uint64_t frame, int64_t h, int64_t w, std::span<uint8_t> raw) {
  const int64_t from = SquareX(camera, frame, w);
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      const bool square = y >= h / 2 && y < h / 2 + kSquare && x >= from && x < from + kSquare;
      raw[y * w + x] = static_cast<uint8_t>(square ? 250 : (x * 3 + y * 7 + static_cast<int64_t>(camera) * 31) % 97);
    }
  }
}

struct Seen {
  int shown = 0, found = 0, late = 0;
};

absl::Status Watch(const Options& options) {
  PS_ASSIGN_OR_RETURN(auto runtime, ps::Runtime::Create({.devices = options.devices}));
  ps::Graph g("camera");
  auto h = g.Param<int>("h", ps::AtMost(kMaxH)), w = g.Param<int>("w", ps::AtMost(kMaxW));
  auto raw = g.Input<uint8_t>("raw", {h, w}, ps::kSlot);  // pinned memory of the slot's own
  auto moving = g.Output<uint8_t>("moving", {h, w}, ps::kSlot);
  auto background = g.KeyedState<uint16_t>("background", {kMaxH, kMaxW}, {.max_keys = options.cameras});
  g.ParallelFor("subtract", {h, w}, Subtract{}, ps::Read(raw), ps::ReadWrite(background), ps::Write(moving));
  PS_ASSIGN_OR_RETURN(
      auto pipe,
      ps::Pipeline<>::Create(
          runtime, g,
          {.slots_per_device = 6, .order = ps::kPerKey, .when_full = ps::kDropOldest, .on_error = ps::kSkip}));
  // The cameras' threads never wait.
  const auto film = [&](uint64_t camera) {
    const int height = 120 + 24 * static_cast<int>(camera % 4), width = 160 + 32 * static_cast<int>(camera % 4);
    for (int f = 0; f < options.frames; ++f) {
      auto frame = pipe.TryAcquire(ps::Key(camera));
      if (frame.ok()) {  // else every slot is at work; the pipeline counts it
        frame->Set(h, height).Set(w, width);
        Expose(camera, static_cast<uint64_t>(f), height, width, frame->span(raw));
        (void)frame->Submit(
            {.id = static_cast<uint64_t>(f), .deadline = std::chrono::milliseconds(options.deadline_ms)});
      }
      std::this_thread::sleep_for(std::chrono::microseconds(options.every_us));
    }
  };
  std::vector<std::thread> cameras;
  for (int c = 0; c < options.cameras; ++c) cameras.emplace_back(film, static_cast<uint64_t>(c));
  std::thread end([&] {
    for (std::thread& camera : cameras) camera.join();
    pipe.Stop();
  });

  std::vector<Seen> seen(static_cast<size_t>(options.cameras));
  while (auto frame = pipe.Pop()) {  // the slot goes back with the item
    Seen& camera = seen[frame.key().value];
    if (!frame.status().ok()) {
      ++camera.late;
      continue;
    }
    const int64_t height = 120 + 24 * static_cast<int64_t>(frame.key().value % 4);
    const int64_t width = 160 + 32 * static_cast<int64_t>(frame.key().value % 4);
    const std::span<const uint8_t> mask = frame.span(moving);
    const int64_t middle = SquareX(frame.key().value, frame.id(), width) + kSquare / 2;
    ++camera.shown;
    camera.found += mask[(height / 2 + kSquare / 2) * width + middle] == 255 ? 1 : 0;
  }
  end.join();

  int shown = 0, found = 0;
  for (size_t c = 0; c < seen.size(); ++c) {
    std::printf("camera %zu: %d frames shown, in %d of them the square was seen to move, %d late\n", c, seen[c].shown,
                seen[c].found, seen[c].late);
    shown += seen[c].shown;
    found += seen[c].found;
  }
  std::printf("%s", Print(pipe.stats()).c_str());
  // Nothing moves in the first frame, nor where the square stood in it, for a while.
  return found >= shown - options.cameras * 8 && shown > 0 ? absl::OkStatus()
                                                           : absl::InternalError("not all were seen");
}

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--devices") == 0) options.devices = argv[i + 1];
    if (std::strcmp(argv[i], "--cameras") == 0) options.cameras = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--frames") == 0) options.frames = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--every-us") == 0) options.every_us = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--deadline-ms") == 0) options.deadline_ms = std::atoi(argv[i + 1]);
  }
  const absl::Status status = Watch(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

// Jacobi's method, run after run on a grid that stays on the first device: bands of rows, one
// a device, of which each step computes the rows inside and at the cuts. A run moves the other bands to their devices
// first and back at its end.
//
// Threads: by one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "penstock/ps.h"

namespace bench {

// `from` begins a row above `to` and ends a row below. The first and last column stay as they are.
struct MeanOfFour {
  PENSTOCK_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const float> from, ps::View<float> to) const {
    const int64_t y = i.y + 1, x = i.x;
    const bool is_edge = x == 0 || x == from.width - 1;
    to(i.y, x) = is_edge ? from(y, x) : 0.25f * (from(y - 1, x) + from(y + 1, x) + (from(y, x - 1) + from(y, x + 1)));
  }
};

inline std::vector<float> JacobiOnCpu(std::vector<float> grid, int64_t side, int steps) {
  std::vector<float> next = grid;
  for (int step = 0; step < steps; ++step, std::swap(grid, next)) {
    for (int64_t y = 1; y + 1 < side; ++y) {
      for (int64_t x = 1; x + 1 < side; ++x) {
        const float* at = &grid[static_cast<size_t>(y * side + x)];
        next[static_cast<size_t>(y * side + x)] = 0.25f * (at[-side] + at[side] + (at[-1] + at[1]));
      }
    }
  }
  return grid;
}

class Jacobi {
 public:
  static constexpr int kSteps = 20;  // of a run; even, so that the result is where the grid was

  // A band for each of the runtime's devices.
  Jacobi(ps::Runtime& runtime, int64_t side, const ps::CompileOptions& options)
      : side_(side),
        memory_(Must(runtime.MakeDeviceBuffer<float>(side * side))),
        host_(Must(runtime.MakeHostBuffer<float>(side * side))) {
    ps::Graph graph("jacobi");
    grid_ = graph.InOut<float>("grid", {side, side}, ps::kDevice);
    const auto next = graph.Buffer<float>("next", {side, side});
    Declare(graph, next, static_cast<int64_t>(runtime.devices().size()));
    exec_ = Must(runtime.Compile(graph, options));
    io_ = exec_.bindings();
    io_.Set(grid_, memory_);
    DeclareTransfers(runtime);
  }

  void Run() {
    const ps::Run run = Must(exec_.Launch(io_));
    Must(run.Wait());
  }

  // One run from a grid that is known; fails if the CPU finds another result.
  void Check(const std::string& job) {
    std::vector<float> start(static_cast<size_t>(side_ * side_));
    for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i * 7919 % 1000);
    std::copy(start.begin(), start.end(), host_.begin());
    Move(up_, up_.bindings().Set(from_host_, host_).Set(to_, memory_));
    Run();
    std::fill(host_.begin(), host_.end(), -1.0f);
    Move(down_, down_.bindings().Set(from_, memory_).Set(to_host_, host_));
    const std::vector<float> expected = JacobiOnCpu(std::move(start), side_, kSteps);
    if (!std::equal(expected.begin(), expected.end(), host_.begin())) Fail(job + ": the grid is wrong");
  }

 private:
  ps::Box Rows(int64_t begin, int64_t end) const { return ps::Slice({begin, 0}, {end - begin, side_}); }

  void Declare(ps::Graph& graph, ps::BufferHandle<float> next, int64_t devices) const {
    for (const int64_t row : {int64_t{0}, side_ - 1}) {  // they never change
      graph.Copy(ps::Name("border", row), ps::Read(grid_, Rows(row, row + 1)), ps::Write(next, Rows(row, row + 1)))
          .On(0);
    }
    for (int step = 0; step < kSteps; ++step) {
      const auto scope = graph.Scope(ps::Name("step", step));
      const auto from = step % 2 == 0 ? grid_ : next, to = step % 2 == 0 ? next : grid_;
      for (int64_t d = 0; d < devices; ++d) {
        const int64_t begin = 1 + (side_ - 2) * d / devices, end = 1 + (side_ - 2) * (d + 1) / devices;
        const auto compute = [&](const char* what, int64_t first, int64_t last) {
          graph
              .ParallelFor(ps::Name(what, d), {last - first, side_}, MeanOfFour{},
                           ps::Read(from, Rows(first - 1, last + 1)), ps::Write(to, Rows(first, last)))
              .On(static_cast<int>(d));
        };
        compute("inside", begin + 1, end - 1);
        compute("first row", begin, begin + 1);
        compute("last row", end - 1, end);
      }
    }
  }

  void DeclareTransfers(ps::Runtime& runtime) {
    ps::Graph upload("upload"), download("download");
    from_host_ = upload.Input<float>("host", side_ * side_);
    to_ = upload.Output<float>("grid", side_ * side_, ps::kDevice);
    upload.Copy("up", ps::Read(from_host_), ps::Write(to_));
    from_ = download.Input<float>("grid", side_ * side_, ps::kDevice);
    to_host_ = download.Output<float>("host", side_ * side_);
    download.Copy("down", ps::Read(from_), ps::Write(to_host_));
    up_ = Must(runtime.Compile(upload, {.slots = 1, .mode = ps::Mode::kStream}));
    down_ = Must(runtime.Compile(download, {.slots = 1, .mode = ps::Mode::kStream}));
  }
  static void Move(ps::Executable& exec, const ps::Bindings& io) {
    const ps::Run run = Must(exec.Launch(io));
    Must(run.Wait());
  }

  const int64_t side_;
  ps::DeviceBuffer<float> memory_;
  ps::HostBuffer<float> host_;
  ps::BufferHandle<float> grid_, from_host_, to_, from_, to_host_;
  ps::Executable exec_, up_, down_;
  ps::Bindings io_;
};

}  // namespace bench

// Jacobi's method on a grid, in bands of rows, one band a device: each cell becomes the mean of its four neighbours.
// The program declares which rows a node reads and writes, and nothing else: the rows at the cuts go from device to
// device by themselves, and while they do, the devices compute the rows inside.
//
//   jacobi [--devices cuda | host:2] [--cells 512] [--steps 100]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "penstock/ps.h"

// `from` begins a row above `to` and ends a row below. The first and last column stay as they are.
struct Mean {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const float> from, ps::View<float> to) const {
    const int64_t y = i.y + 1, x = i.x;
    const bool is_edge = x == 0 || x == from.width - 1;
    to(i.y, x) = is_edge ? from(y, x) : 0.25f * (from(y - 1, x) + from(y + 1, x) + (from(y, x - 1) + from(y, x + 1)));
  }
};
struct Same {
  PS_HOST_DEVICE void operator()(int64_t i, const float* from, float* to) const { to[i] = from[i]; }
};

struct Options {
  std::string devices;
  int64_t cells = 512;  // a side
  int steps = 100;
};

// The steps of one band, rows [begin, end), on a device. The rows at its borders come first, since others wait for
// them.
class Band {
 public:
  Band(ps::Graph& graph, int64_t width, int device, int64_t begin, int64_t end)
      : graph_(graph), width_(width), device_(device), begin_(begin), end_(end) {}

  void Step(ps::BufferHandle<float> from, ps::BufferHandle<float> to) const {
    Compute("first row", from, to, begin_, begin_ + 1);
    if (end_ - begin_ > 1) Compute("last row", from, to, end_ - 1, end_);
    if (end_ - begin_ > 2) Compute("inside", from, to, begin_ + 1, end_ - 1);
  }

 private:
  ps::Box Rows(int64_t begin, int64_t end) const { return ps::Slice({begin, 0}, {end - begin, width_}); }
  void Compute(const char* what, ps::BufferHandle<float> from, ps::BufferHandle<float> to, int64_t begin,
               int64_t end) const {
    graph_
        .ParallelFor(ps::Name(what, device_), {end - begin, width_}, Mean{}, ps::Read(from, Rows(begin - 1, end + 1)),
                     ps::Write(to, Rows(begin, end)))
        .On(device_);
  }

  ps::Graph& graph_;
  int64_t width_;
  int device_;
  int64_t begin_, end_;
};

std::vector<float> Expected(std::vector<float> grid, int64_t side, int steps) {
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

absl::Status Run(const Options& options) {
  const int64_t side = options.cells;
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = options.devices}));
  const int devices = static_cast<int>(std::min<int64_t>(runtime.devices().size(), side - 2));

  ps::Graph graph("jacobi");
  auto in = graph.Input<float>("in", {side, side}, ps::kPinned);
  auto out = graph.Output<float>("out", {side, side}, ps::kPinned);
  const ps::BufferHandle<float> u[] = {graph.Buffer<float>("u0", {side, side}),
                                       graph.Buffer<float>("u1", {side, side})};
  std::vector<Band> bands;
  for (int d = 0; d < devices; ++d) {
    bands.emplace_back(graph, side, d, 1 + (side - 2) * d / devices, 1 + (side - 2) * (d + 1) / devices);
  }
  graph.Copy("set", in, u[0]).On(0);
  graph.Copy("borders", in, u[1]).On(0);  // the first and last row never change
  for (int step = 0; step < options.steps; ++step) {
    const auto scope = graph.Scope(ps::Name("step", step));
    for (const Band& band : bands) band.Step(u[step % 2], u[1 - step % 2]);
  }
  graph.Copy("get", u[options.steps % 2], out).On(0);
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));

  PS_ASSIGN_OR_RETURN(auto grid, runtime.MakeHostBuffer<float>(side * side));
  PS_ASSIGN_OR_RETURN(auto result, runtime.MakeHostBuffer<float>(side * side));
  for (int64_t i = 0; i < side * side; ++i) grid[i] = static_cast<float>(i * 7919 % 1000);
  ps::Bindings io = exec.bindings();
  PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(io.Set(in, grid).Set(out, result)));
  PS_RETURN_IF_ERROR(run.Wait());

  const std::vector<float> expected = Expected({grid.begin(), grid.end()}, side, options.steps);
  if (!std::equal(result.begin(), result.end(), expected.begin())) return absl::InternalError("the grid is wrong");
  std::printf("%d steps of %lld x %lld cells on %d devices are right\n", options.steps, static_cast<long long>(side),
              static_cast<long long>(side), devices);
  return absl::OkStatus();
}

absl::Status Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--devices") options.devices = argv[i + 1];
    else if (flag == "--cells") options.cells = std::atoll(argv[i + 1]);
    else if (flag == "--steps") options.steps = std::atoi(argv[i + 1]);
    else return absl::InvalidArgumentError("there is no " + flag);
  }
  if (argc % 2 == 0) return absl::InvalidArgumentError(std::string(argv[argc - 1]) + " lacks a value");
  if (options.cells < 3 || options.steps < 0)
    return absl::InvalidArgumentError("give 3 cells or more, and no steps or more");
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  Options options;
  absl::Status status = Parse(argc, argv, options);
  if (status.ok()) status = Run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

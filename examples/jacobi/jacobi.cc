// Jacobi's method on a grid whose rows are dealt to all devices: each cell becomes the mean of its four neighbours.
// Each device computes the rows at its cuts first, since others wait for them. Rows of neighbours are read in their
// memory, if the devices have a link, and are copied if not.
//
//   jacobi [--devices cuda | host:2] [--cells 512] [--steps 100]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "penstock/ps.h"

// From the rows above, at and below those of `to`. The first and last column stay as they are.
struct Mean {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const float> above, ps::View<const float> at,
                                 ps::View<const float> below, ps::View<float> to) const {
    const int64_t y = i.y, x = i.x;
    const bool is_edge = x == 0 || x == at.width - 1;
    to(y, x) = is_edge ? at(y, x) : 0.25f * (above(y, x) + below(y, x) + (at(y, x - 1) + at(y, x + 1)));
  }
};

struct Options {
  std::string devices;
  int64_t cells = 512;  // a side
  int steps = 100;
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
  std::vector<ps::DeviceShare> devices = runtime.all_devices();
  if (static_cast<int64_t>(devices.size()) > side - 2) devices.erase(devices.begin() + (side - 2), devices.end());

  ps::Graph graph("jacobi");
  auto in = graph.Input<float>("in", {side, side}, ps::kPinned);
  auto out = graph.Output<float>("out", {side, side}, ps::kPinned);
  // The first and the last row never change: they are the halos outside.
  const ps::Sharding cut = ps::Blocked(0, devices);
  const ps::ShardedHandle<float> u[] = {graph.Sharded<float>("u", {side - 2, side}, cut, ps::Halo(1)),
                                        graph.Sharded<float>("v", {side - 2, side}, cut, ps::Halo(1))};
  ps::Scatter(graph, "set", in, u[0]);
  ps::Scatter(graph, "borders", in, u[1]);
  for (int step = 0; step < options.steps; ++step) {
    const auto scope = graph.Scope(ps::Name("step", step));
    const auto &from = u[step % 2], &to = u[1 - step % 2];
    ps::ForEachPart(graph, to, [&](const ps::ShardPart& rows) {
      graph.ParallelFor("mean", rows.extent, Mean{}, ps::ReadShifted(from, rows, -1), ps::Read(from, rows),
                        ps::ReadShifted(from, rows, 1), ps::Write(to, rows));
    });
  }
  ps::Gather(graph, "get", u[options.steps % 2], out);
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
              static_cast<long long>(side), static_cast<int>(devices.size()));
  return absl::OkStatus();
}

absl::Status Misused(const std::string& what) {
  return absl::InvalidArgumentError(what + "; usage: jacobi [--devices cuda | host:2] [--cells 512] [--steps 100]");
}

absl::Status Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--devices") options.devices = argv[i + 1];
    else if (flag == "--cells") options.cells = std::atoll(argv[i + 1]);
    else if (flag == "--steps") options.steps = std::atoi(argv[i + 1]);
    else return Misused("there is no " + flag);
  }
  if (argc % 2 == 0) return Misused(std::string(argv[argc - 1]) + " lacks a value");
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

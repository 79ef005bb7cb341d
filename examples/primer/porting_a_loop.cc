// Primer: a loop of loops, ported in steps. A plate has walls and cells that are kept hot or cold; every other cell
// takes the mean of its neighbours, again and again, until hardly anything changes. porting_a_loop.md explains it.
//
//   porting_a_loop [--devices cuda | host] [--side 512]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr float kTolerance = 0.05f;  // in degrees: the change of a cell that is small enough
constexpr int kMostRounds = 10'000;

struct Plate {
  int64_t side = 0;
  std::vector<float> u;  // the temperature of each cell, in degrees
  std::vector<uint8_t> fixed;  // 1: the cell keeps it; all cells at the edge do
  int rounds = 0;  // that it took
  std::vector<float> changes = {0, 0};  // of each colour: the greatest change of a cell in the last round
};

// Step 0: the loop to be ported. Cells are coloured like those of a chessboard, and a round first goes over one colour,
// then over the other. All neighbours of a cell have the other colour.
void PlainLoop(Plate& p) {
  float most;
  do {
    most = 0;
    for (int colour = 0; colour < 2; ++colour) {
      for (int64_t y = 1; y < p.side - 1; ++y) {
        for (int64_t x = 1; x < p.side - 1; ++x) {
          const int64_t at = y * p.side + x;
          if ((y + x) % 2 != colour || p.fixed[at] != 0) continue;
          const float mean = 0.25f * (p.u[at - p.side] + p.u[at + p.side] + p.u[at - 1] + p.u[at + 1]);
          most = std::max(most, std::abs(mean - p.u[at]));
          p.u[at] = mean;
        }
      }
    }
    ++p.rounds;
  } while (most > kTolerance && p.rounds < kMostRounds);
}

// Step 1: the body of the inner loops becomes a functor. It writes its cell, and returns by how much that has changed.
struct Sweep {
  int colour;
  PS_HOST_DEVICE float operator()(ps::Index2 i, ps::View<const uint8_t> fixed, ps::View<float> u) const {
    const int64_t y = i.y, x = i.x;
    if ((y + x) % 2 != colour || fixed(y, x) != 0) return 0;
    const float mean = 0.25f * (u(y - 1, x) + u(y + 1, x) + u(y, x - 1) + u(y, x + 1));
    const float change = fabsf(mean - u(y, x));
    u(y, x) = mean;
    return change;
  }
};
// A round is two nodes, each with the greatest change of its colour.
void DeclareRound(ps::Graph& graph, int64_t side, ps::BufferHandle<uint8_t> fixed, ps::BufferHandle<float> u,
                  ps::BufferHandle<float> changes) {
  for (int colour = 0; colour < 2; ++colour) {
    graph.TransformReduce(ps::Name("sweep", colour), {side, side}, Sweep{colour}, ps::Max(), 0, ps::Read(fixed),
                          ps::ReadWrite(u), ps::Write(changes, ps::Slice({colour}, {1})));
  }
}
struct GoOn {
  PS_HOST_DEVICE bool operator()(const float* changes) const {
    return changes[0] > kTolerance || changes[1] > kTolerance;
  }
};

// Launches round after round; the host decides whether there is another.
absl::Status Drive(ps::Executable& exec, const ps::Bindings& io, Plate& plate) {
  do {
    PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(io));
    PS_RETURN_IF_ERROR(run.Wait());
    ++plate.rounds;
  } while (GoOn()(plate.changes.data()) && plate.rounds < kMostRounds);
  return absl::OkStatus();
}

// What to measure: it solves the plate, whose temperatures come from the host and go back there.
template <class Solve>
absl::Status Measure(const char* what, const Plate& given, const Plate& expected, double& plain_ms, Solve solve) {
  Plate plate;
  std::chrono::duration<double, std::milli> took;
  for (int i = 0; i < 2; ++i) {  // the first time memory is touched, the second counts
    plate = given;
    const auto begin = std::chrono::steady_clock::now();
    PS_RETURN_IF_ERROR(solve(plate));
    took = std::chrono::steady_clock::now() - begin;
  }
  if (plain_ms == 0) plain_ms = took.count();
  std::printf("%-30s %6d %9.2f %9.2f\n", what, plate.rounds, took.count(), plain_ms / took.count());
  const bool is_right = plate.u == expected.u && plate.rounds == expected.rounds;
  return is_right ? absl::OkStatus() : absl::InternalError(std::string(what) + ": the plate is wrong");
}

Plate MakePlate(int64_t side) {
  Plate plate{.side = side, .u = std::vector<float>(side * side), .fixed = std::vector<uint8_t>(side * side)};
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const bool is_edge = y == 0 || x == 0 || y == side - 1 || x == side - 1;
      const bool is_heater = y == side / 4 && x > side / 4 && x < side / 2;
      const bool is_wall = x == side / 2 && y > side / 3;
      plate.fixed[y * side + x] = is_edge || is_heater || is_wall;
      plate.u[y * side + x] = is_heater ? 100 : 20;
    }
  }
  return plate;
}

absl::Status Run(const std::string& devices, int64_t side) {
  if (side < 8 || side > 16384) return absl::InvalidArgumentError("give a side of 8 to 16384 cells");
  const Plate given = MakePlate(side);
  Plate expected = given;
  PlainLoop(expected);
  double plain_ms = 0;
  const auto measure = [&](const char* what, auto solve) { return Measure(what, given, expected, plain_ms, solve); };
  std::printf("                               rounds        ms  speed-up\n");
  PS_RETURN_IF_ERROR(measure("0 plain loop", [](Plate& plate) { return PlainLoop(plate), absl::OkStatus(); }));

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices}));
  {  // Step 1: each round is a launch, which brings the plate to the device and back.
    ps::Graph graph("round");
    auto fixed = graph.Input<uint8_t>("fixed", {side, side});
    auto u = graph.InOut<float>("u", {side, side});
    auto changes = graph.Output<float>("changes", 2);
    DeclareRound(graph, side, fixed, u, changes);
    PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
    const auto solve = [&](Plate& plate) {
      return Drive(exec, exec.bindings().Set(fixed, plate.fixed).Set(u, plate.u).Set(changes, plate.changes), plate);
    };
    PS_RETURN_IF_ERROR(measure("1 functors, all copied", solve));
  }
  // Step 2: the plate stays on the device, as States. Only two numbers come back from a round.
  PS_ASSIGN_OR_RETURN(auto u, runtime.MakeState<float>("u", {side, side}));
  PS_ASSIGN_OR_RETURN(auto fixed, runtime.MakeState<uint8_t>("fixed", {side, side}, given.fixed));
  {
    ps::Graph graph("round on States");
    auto changes = graph.Output<float>("changes", 2);
    DeclareRound(graph, side, graph.Use(fixed), graph.Use(u), changes);
    PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
    const auto solve = [&](Plate& plate) -> absl::Status {
      PS_RETURN_IF_ERROR(u.Set(plate.u));
      PS_RETURN_IF_ERROR(Drive(exec, exec.bindings().Set(changes, plate.changes), plate));
      return u.Read(plate.u);
    };
    PS_RETURN_IF_ERROR(measure("2 States", solve));
  }
  // Step 3: the outer loop stands in the graph, too, so the device decides, and there is one launch.
  ps::Graph graph("all rounds");
  auto changes = graph.Buffer<float>("changes", 2);
  auto rounds = graph.Output<int>("rounds", 1);
  const ps::BufferHandle<float> handle_u = graph.Use(u);
  const ps::BufferHandle<uint8_t> handle_fixed = graph.Use(fixed);
  graph.Fill("begin", changes, 2 * kTolerance);
  graph.While("rounds", ps::When(GoOn{}, ps::Read(changes)).Count(rounds), {.max = kMostRounds},
              [&](ps::Graph& body) { DeclareRound(body, side, handle_fixed, handle_u, changes); });
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  const auto solve = [&](Plate& plate) -> absl::Status {
    PS_RETURN_IF_ERROR(u.Set(plate.u));
    PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(exec.bindings().Set(rounds, plate.rounds)));
    PS_RETURN_IF_ERROR(run.Wait());
    return u.Read(plate.u);
  };
  PS_RETURN_IF_ERROR(measure("3 loop in the graph", solve));
  std::printf("on %s; all plates have the same bits\n", runtime.devices()[0].name.c_str());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string devices;
  int64_t side = 512;
  absl::Status status;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--devices") devices = value;
    else if (flag == "--side") side = std::atoll(value.c_str());
    else status = absl::InvalidArgumentError("there is no " + flag + ", but --devices LIST and --side N");
  }
  if (status.ok()) status = Run(devices, side);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

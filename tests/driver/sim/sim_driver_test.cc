// The simulator against the runtime: random programs, run on devices in virtual time and simulated, take the same times
// to the last bit.
#include "src/driver/sim/sim_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/plan/graph_schedule.h"
#include "graph/simulate/plan_sim_graph.h"
#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/executable/internals.h"
#include "tests/driver/sim/sim_rig.h"
#include "tests/support/environment.h"
#include "tests/support/sanitized.h"
#include "tests/support/status.h"

namespace penstock::sim_driver_test {
namespace {

constexpr int64_t kN = 32;

struct Add {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> a, View<int32_t> b) const { b(i) = a(i) + 1; }
};
struct Sum {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> a, View<int32_t> b) const { b(i) += a(i); }
};

class CaseMaker {
 public:
  explicit CaseMaker(uint64_t seed) : random_(static_cast<uint32_t>(seed)) {}

  int Between(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint32_t>(most - least + 1));
  }
  // In whole 2^-10 us, so that sums are exact.
  double Micros(int least, int most) { return Between(least * 1024, most * 1024) / 1024.0; }
  double MicrosOrNone(int most) {
    const bool any = Between(0, 1) == 1;
    const double us = Micros(0, most);
    return any ? us : 0;
  }

  std::vector<graph::SimDevice> Devices(int count) {
    std::vector<graph::SimDevice> devices(static_cast<size_t>(count));
    for (graph::SimDevice& device : devices) {
      device.kernels = Between(1, 3);
      device.upload_slowdown = Between(4, 8) / 4.0;
      device.download_slowdown = Between(4, 8) / 4.0;
    }
    return devices;
  }

  graph::SimOptions Options() {
    graph::SimOptions options;
    options.runs = Between(1, 6);
    options.slots = Between(1, 4);
    options.workers = Between(1, 2);
    options.between_us = MicrosOrNone(40);
    options.period_us = Between(0, 2) == 0 ? Micros(1, 60) : 0;
    options.launch_us = Micros(0, 6) + 1.0 / 1024;  // or runs do everything at the same time
    options.node_us = MicrosOrNone(4);
    options.graph_us = MicrosOrNone(5);
    options.stream_latency_us = Micros(0, 2);
    options.graph_latency_us = Micros(0, 2);
    options.start_us = MicrosOrNone(3);
    options.crossing_us = Micros(0, 5);
    options.crossing_submit_us = MicrosOrNone(3);
    options.completion_us = Micros(0, 5);
    return options;
  }

 private:
  std::mt19937 random_;
};

struct Shape {
  const char* name;
  Mode mode = Mode::kStream;
  int devices = 1;
  bool host_nodes = false, state = false;

  friend void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }
};

// A random program on a rig.
class Program {
 public:
  Program(CaseMaker& make, SimRig& rig, const Shape& shape) : make_(make), rig_(rig), shape_(shape), graph_("random") {}

  void Declare() {
    run_ = graph_.Param<int32_t>("run");
    if (shape_.state) {
      state_.emplace(*rig_.runtime().MakeState<int32_t>("state", kN));
      buffers_.push_back(graph_.Use(*state_));
    }
    for (int i = make_.Between(1, 2); i > 0; --i) {
      const std::string name = "in" + std::to_string(i);
      buffers_.push_back(graph_.Input<int32_t>(name, kN, kPinned));
      bound_.push_back(buffers_.back());
    }
    for (int n = make_.Between(1, 12); n > 0; --n) AddNode(n);
    const auto out = graph_.Output<int32_t>("out", kN, kPinned);
    bound_.push_back(out);
    graph_.ParallelFor("last", kN, Add{}, Read(Any()), Write(out)).On(Device());
  }

  Graph& declared() { return graph_; }

  const Bindings& Bind(Executable& executable, int32_t r) {
    io_ = executable.bindings();
    io_.Set(run_, r);
    for (const auto& handle : bound_) {
      memory_.push_back(*rig_.runtime().MakeHostBuffer<int32_t>(kN));
      std::fill(memory_.back().begin(), memory_.back().end(), 1);
      io_.Set(handle, memory_.back());
    }
    return io_;
  }

 private:
  using Handle = BufferHandle<int32_t>;

  int Device() { return make_.Between(0, shape_.devices - 1); }
  Handle Any() { return buffers_[static_cast<size_t>(make_.Between(0, static_cast<int>(buffers_.size()) - 1))]; }
  // One that has been written inside the graph, so that more may be written to it; or a new one.
  Handle Target(int n, bool& is_new, Where where = kDevice) {
    is_new = targets_.empty() || make_.Between(0, 1) == 0;
    if (!is_new) return targets_[static_cast<size_t>(make_.Between(0, static_cast<int>(targets_.size()) - 1))];
    return graph_.Buffer<int32_t>("b" + std::to_string(n), kN, where);
  }
  void Written(Handle target, bool is_new) {
    if (!is_new) return;
    buffers_.push_back(target);
    targets_.push_back(target);
  }

  void AddNode(int n) {
    const std::string name = "node " + std::to_string(n);
    bool is_new = false;
    const Handle from = Any();
    const int kind = make_.Between(0, shape_.host_nodes ? 9 : 6);
    if (shape_.state && make_.Between(0, 3) == 0) {
      graph_.ParallelFor(name, kN, Sum{}, Read(from), ReadWrite(*state_));
      return;
    }
    if (kind <= 2) {
      const Handle to = Target(n, is_new);
      if (to.index() == from.index()) return;
      graph_.ParallelFor(name, kN, Add{}, Read(from), Write(to)).On(Device());
      Written(to, is_new);
    } else if (kind <= 4) {
      const Handle to = Target(n, is_new);
      if (to.index() == from.index()) return;
      if (is_new) {
        graph_.Copy(name, from, to).On(Device());
      } else {
        const int at = make_.Between(0, 1) * 16;
        graph_.ParallelFor(name, 16, Sum{}, Read(from, Slice({at}, {16})), ReadWrite(to, Slice({16 - at}, {16})))
            .On(Device());
      }
      Written(to, is_new);
    } else if (kind <= 6) {
      const Handle to = Target(n, is_new);
      graph_.Fill(name, to, 3).On(Device());
      Written(to, is_new);
    } else {
      const Handle to = graph_.Buffer<int32_t>("h" + std::to_string(n), kN, kPinned);
      const int32_t decl = static_cast<int32_t>(graph_.model().nodes.size());
      SimRig* const rig = &rig_;
      graph_
          .Host(
              name,
              [rig, decl](std::span<const int32_t> x, std::span<int32_t> y, int32_t run) {
                rig->SpendOnHost(decl, run);
                for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] + 1;
              },
              Read(from), Write(to), run_)
          .Concurrency(64);
      buffers_.push_back(to);
    }
  }

  CaseMaker& make_;
  SimRig& rig_;
  const Shape shape_;
  Graph graph_;
  ParamHandle<int32_t> run_;
  std::optional<State<int32_t>> state_;
  std::vector<Handle> buffers_, targets_, bound_;
  std::vector<HostBuffer<int32_t>> memory_;
  Bindings io_;
};

const graph::Plan& PlanOf(const Executable& executable) {
  return detail::Internals<Executable>::SetOf(executable)->first().graph().plan();
}

RunTimes TimesOf(const graph::SimResult& result, int32_t runs, size_t nodes) {
  RunTimes times;
  times.Resize(runs, nodes);
  for (const graph::SimSpan& span : result.spans) {
    if (span.node < 0) continue;
    times.begin_us[static_cast<size_t>(span.run)][static_cast<size_t>(span.node)] = span.begin_us;
    times.end_us[static_cast<size_t>(span.run)][static_cast<size_t>(span.node)] = span.end_us;
  }
  times.launched_us = result.launched_us;
  times.ended_us = result.ended_us;
  return times;
}

// Whether two threads have done their work at the same instant. Then either may be the first to go on, and the
// simulator says nothing about which.
bool HasTies(const graph::SimResult& result) {
  std::set<double> ends;
  return std::any_of(result.spans.begin(), result.spans.end(), [&](const graph::SimSpan& span) {
    const bool is_on_host = span.node < 0 || span.resource == graph::SimResource::kWorker;
    return is_on_host && span.end_us > span.begin_us && !ends.insert(span.end_us).second;
  });
}

absl::StatusOr<graph::SimResult> SimulateOf(const Executable& executable, const std::vector<double>& us,
                                            const graph::SimOptions& options,
                                            const std::vector<graph::SimDevice>& devices) {
  const graph::Plan& plan = PlanOf(executable);
  graph::PlanCosts costs;
  costs.us.assign(us.begin(), us.end());
  graph::SimGraph sim_graph;
  if (options.as_graphs) {
    const graph::Table<graph::NodeId, bool> refused(plan.nodes.size());
    sim_graph = MakeSimGraph(plan, costs, graph::MakeGraphSchedule(plan, refused));
  } else {
    sim_graph = MakeSimGraph(plan, costs);
  }
  sim_graph.devices = devices;
  return Simulate(sim_graph, options);
}

// Counts the programs that were compared.
void ExpectAgreement(uint64_t seed, const Shape& shape, int& compared) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseMaker make(seed);
  graph::SimOptions options = make.Options();
  options.as_graphs = shape.mode == Mode::kGraph;
  // The simulator's completion thread is never busy; that of the runtime submits what has waited for a State.
  if (shape.host_nodes && shape.state) options.node_us = options.graph_us = 0;
  // A run that has ended is waited for by nobody; the simulator waits for its touches on other devices, and has no
  // events for it.
  if (shape.devices > 1 && shape.state) {
    options.completion_us = std::max(options.completion_us, options.crossing_us);
    options.crossing_submit_us = 0;
  }
  const std::vector<graph::SimDevice> devices = make.Devices(shape.devices);
  SimRig rig(devices, options);
  Program program(make, rig, shape);
  program.Declare();
  auto executable = rig.runtime().Compile(
      program.declared(), {.slots = options.slots, .mode = shape.mode, .max_lanes = make.Between(1, 4)});
  ASSERT_OK(executable.status());
  const graph::Plan& plan = PlanOf(*executable);
  const auto in_batch = [](const graph::PlanNode& node) { return node.batch >= 0; };
  if (std::any_of(plan.nodes.begin(), plan.nodes.end(), in_batch)) return;
  std::vector<double> us;
  for (size_t n = 0; n < plan.nodes.size(); ++n) us.push_back(make.Micros(1, 40));
  const auto simulated = SimulateOf(*executable, us, options, devices);
  ASSERT_OK(simulated.status());
  if (HasTies(*simulated)) return;
  const auto times =
      rig.Run(*executable, us, [&](int32_t r) -> const Bindings& { return program.Bind(*executable, r); });
  ASSERT_OK(times.status());
  const RunTimes expected = TimesOf(*simulated, options.runs, plan.nodes.size());
  EXPECT_EQ(times->launched_us, expected.launched_us) << executable->PlanText();
  EXPECT_EQ(times->begin_us, expected.begin_us) << executable->PlanText();
  EXPECT_EQ(times->end_us, expected.end_us) << executable->PlanText();
  EXPECT_EQ(times->ended_us, expected.ended_us) << executable->PlanText();
  ++compared;
}

class RandomPrograms : public testing::TestWithParam<Shape> {};

TEST_P(RandomPrograms, TakeTheTimesThatTheSimulatorGives) {
  const uint64_t programs = FromEnvironment("PENSTOCK_RANDOM_PROGRAMS", kSanitized ? 4 : 40);
  const uint64_t first = FromEnvironment("PENSTOCK_RANDOM_SEED", 1);
  int compared = 0;
  for (uint64_t seed = first; seed < first + programs; ++seed) {
    ExpectAgreement(seed, GetParam(), compared);
    if (!HasFailure()) continue;
    FAIL() << "PENSTOCK_RANDOM_SEED=" << seed << " PENSTOCK_RANDOM_PROGRAMS=1 runs this program alone";
  }
  EXPECT_GE(compared, static_cast<int>(programs * 9 / 10));
}

const Shape kShapes[] = {{"Streams"},
                         {"Graphs", Mode::kGraph},
                         {"TwoDevices", Mode::kStream, 2},
                         {"GraphsOnTwoDevices", Mode::kGraph, 2},
                         {"States", Mode::kStream, 1, false, true},
                         {"StatesInGraphs", Mode::kGraph, 1, false, true},
                         {"StatesOnTwoDevices", Mode::kStream, 2, false, true},
                         {"StatesInGraphsOnTwoDevices", Mode::kGraph, 2, false, true},
                         {"HostNodes", Mode::kStream, 1, true},
                         {"HostNodesInGraphs", Mode::kGraph, 1, true},
                         {"HostNodesOnTwoDevices", Mode::kStream, 2, true},
                         {"HostNodesInGraphsOnTwoDevices", Mode::kGraph, 2, true},
                         {"HostNodesAndStates", Mode::kStream, 1, true, true},
                         {"HostNodesAndStatesInGraphs", Mode::kGraph, 1, true, true}};
INSTANTIATE_TEST_SUITE_P(SimDriver, RandomPrograms, testing::ValuesIn(kShapes),
                         [](const auto& shape) { return std::string(shape.param.name); });

// By hand: each node is submitted 1 us after the one before and arrives 2 us later; the host knows of an end after 3
// us.
TEST(SimDriver, TakesTheTimesOfItsOptionsAndExecutesTheWork) {
  const graph::SimOptions options{
      .runs = 1, .slots = 1, .launch_us = 1, .node_us = 1, .stream_latency_us = 0.5, .start_us = 2, .completion_us = 3};
  SimRig rig({{}}, options);
  Graph graph("by hand");
  const auto in = graph.Input<int32_t>("in", kN, kPinned);
  const auto out = graph.Output<int32_t>("out", kN, kPinned);
  graph.ParallelFor("add", kN, Add{}, Read(in), Write(out));
  auto executable = rig.runtime().Compile(graph, {.slots = 1, .mode = Mode::kStream});
  ASSERT_OK(executable.status());
  ASSERT_EQ(PlanOf(*executable).nodes.size(), 3u);  // with an upload and a download
  auto x = *rig.runtime().MakeHostBuffer<int32_t>(kN), y = *rig.runtime().MakeHostBuffer<int32_t>(kN);
  std::fill(x.begin(), x.end(), 41);
  Bindings io = executable->bindings();
  io.Set(in, x).Set(out, y);
  const auto times = rig.Run(*executable, {8, 16, 4}, [&](int32_t) -> const Bindings& { return io; });
  ASSERT_OK(times.status());
  EXPECT_EQ(times->begin_us[0], (std::vector<double>{4, 12.5, 29}));
  EXPECT_EQ(times->end_us[0], (std::vector<double>{12.5, 29, 33.5}));
  EXPECT_EQ(times->ended_us[0], 36.5);
  EXPECT_EQ(y[0], 42);
  EXPECT_EQ(y[kN - 1], 42);
}

TEST(SimDriver, RefusesWhatItDoesNotSimulate) {
  driver::sim::SimDriver driver({.devices = {{}}, .cost_of = [](const driver::OpTag&) { return std::nullopt; }});
  const auto stream = driver.CreateStream(0, 0);
  ASSERT_OK(stream.status());
  const auto is_unimplemented = [](const absl::Status& status) {
    return status.code() == absl::StatusCode::kUnimplemented;
  };
  EXPECT_TRUE(is_unimplemented(driver.CopyBatch(*stream, {})));
  EXPECT_TRUE(is_unimplemented(driver.BeginCapture(*stream)));
  EXPECT_TRUE(is_unimplemented(driver.LoadHostcall(0).status()));
  EXPECT_TRUE(is_unimplemented(driver.LoadLoopKernels(0).status()));
  EXPECT_FALSE(driver.Step());
}

}  // namespace
}  // namespace penstock::sim_driver_test

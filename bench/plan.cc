// What planning a graph costs a node: MakePlan from a declared graph to the plan, and how that divides among its
// passes. Runtime::Compile on a host device beside it: the plan, the program made from it, and one slot with its
// streams, events and memory.
//
// Shapes: a chain on one buffer; eight chains side by side; the three-point stencil, eight wide, on buffers and on
// boxes of one buffer; and random layers of 32 nodes, each reading one to four buffers of the layer before and writing
// one of its own, so that lifetimes are packed. Beside them, 1000 Ifs of ten nodes: many small plans. And what it costs
// to place a graph on eight devices: three plans at most, and a simulation of each.
//
// The planner has no public entry of its own, so this one benchmark looks behind include/.
#include <time.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graph/control/fold.h"
#include "graph/passes/passes.h"
#include "graph/place/assign.h"
#include "graph/place/choose_placement.h"
#include "graph/place/figures.h"
#include "graph/plan/plan.h"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

using Buffer = ps::BufferHandle<float>;

struct Touch {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, float*) const {}
};
struct Read1 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const float*, float*) const {}
};
struct Read3 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const float*, const float*, const float*, float*) const {}
};
struct Read4 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const float*, const float*, const float*, const float*, float*) const {}
};

constexpr int64_t kElements = 64;
std::string Node(int i) { return "node " + std::to_string(i); }
std::vector<Buffer> Buffers(ps::Graph& graph, int count, const char* name) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(graph.Buffer<float>(name + std::to_string(i), kElements));
  return buffers;
}

// Chains side by side, node after node in turn.
void AddChains(ps::Graph& graph, int nodes, int width) {
  const std::vector<Buffer> cells = Buffers(graph, width, "cell ");
  for (int i = 0; i < width; ++i) graph.Fill("fill " + std::to_string(i), cells[static_cast<size_t>(i)], 1.f);
  for (int i = width; i < nodes; ++i) {
    graph.ParallelFor(Node(i), kElements, Touch{}, ps::ReadWrite(cells[static_cast<size_t>(i % width)]));
  }
}

constexpr int kWidth = 8;

// `read(row, i)` and `write(row, i)` are the accesses of cell i of the row, 0 or 1.
template <class ReadCell, class WriteCell>
void AddStencil(ps::Graph& graph, int nodes, ReadCell read, WriteCell write) {
  for (int n = 0; n < nodes; ++n) {
    const int i = n % kWidth, row = n / kWidth % 2;
    if (n < kWidth) {
      graph.ParallelFor(Node(n), kElements, Touch{}, write(row, i));
    } else {
      graph.ParallelFor(Node(n), kElements, Read3{}, read(1 - row, std::max(i - 1, 0)), read(1 - row, i),
                        read(1 - row, std::min(i + 1, kWidth - 1)), write(row, i));
    }
  }
}

void AddStencilOfBuffers(ps::Graph& graph, int nodes) {
  const std::vector<Buffer> rows[] = {Buffers(graph, kWidth, "even "), Buffers(graph, kWidth, "odd ")};
  const auto at = [&](int row, int i) { return rows[row][static_cast<size_t>(i)]; };
  AddStencil(
      graph, nodes, [&](int row, int i) { return ps::Read(at(row, i)); },
      [&](int row, int i) { return ps::Write(at(row, i)); });
}

void AddStencilOfBoxes(ps::Graph& graph, int nodes) {
  const Buffer rows = graph.Buffer<float>("rows", 2 * kWidth * kElements);
  const auto at = [](int row, int i) { return ps::Slice({(row * kWidth + i) * kElements}, {kElements}); };
  AddStencil(
      graph, nodes, [&](int row, int i) { return ps::Read(rows, at(row, i)); },
      [&](int row, int i) { return ps::Write(rows, at(row, i)); });
}

void AddLayers(ps::Graph& graph, int nodes) {
  constexpr int kLayer = 32;
  std::mt19937 random(4711);
  const std::vector<Buffer> outs = Buffers(graph, nodes, "out ");
  for (int i = 0; i < nodes; ++i) {
    const Buffer to = outs[static_cast<size_t>(i)];
    if (i < kLayer) {
      graph.Fill(Node(i), to, 1.f);
      continue;
    }
    const auto pick = [&] {
      return ps::Read(outs[static_cast<size_t>((i / kLayer - 1) * kLayer) + random() % kLayer]);
    };
    switch (random() % 3) {
      case 0: graph.ParallelFor(Node(i), kElements, Read1{}, pick(), ps::Write(to)); break;
      case 1: graph.ParallelFor(Node(i), kElements, Read3{}, pick(), pick(), pick(), ps::Write(to)); break;
      default: graph.ParallelFor(Node(i), kElements, Read4{}, pick(), pick(), pick(), pick(), ps::Write(to)); break;
    }
  }
}

struct IsSet {
  PENSTOCK_HOST_DEVICE bool operator()(const int32_t* flag) const { return *flag != 0; }
};

// Each changes one of eight buffers, by way of one of its own.
void AddIfs(ps::Graph& graph, int count, int nodes) {
  const auto flag = graph.Input<int32_t>("flag", 1);
  const std::vector<Buffer> cells = Buffers(graph, 8, "cell ");
  for (int i = 0; i < 8; ++i) graph.Fill("fill " + std::to_string(i), cells[static_cast<size_t>(i)], 1.f);
  for (int i = 0; i < count; ++i) {
    graph.If("if " + std::to_string(i), ps::When(IsSet{}, ps::Read(flag)), [&](ps::Graph& then) {
      const Buffer own = then.Buffer<float>("own", kElements);
      then.Fill("begin", own, 1.f);
      for (int n = 2; n < nodes; ++n) then.ParallelFor(Node(n), kElements, Touch{}, ps::ReadWrite(own));
      then.ParallelFor("end", kElements, Read1{}, ps::Read(own), ps::ReadWrite(cells[static_cast<size_t>(i % 8)]));
    });
  }
}

struct Shape {
  const char* name;
  std::function<void(ps::Graph&, int)> add;
};
const Shape kShapes[] = {
    {"chain", [](ps::Graph& graph, int nodes) { AddChains(graph, nodes, 1); }},
    {"8 wide", [](ps::Graph& graph, int nodes) { AddChains(graph, nodes, 8); }},
    {"stencil", AddStencilOfBuffers},
    {"stencil of boxes", AddStencilOfBoxes},
    {"random layers", AddLayers},
};

struct Size {
  int nodes, repeats;
};

penstock::graph::PlanOptions HostDevices(int count) {
  penstock::graph::PlanOptions options;
  for (int d = 0; d < count; ++d) options.devices.push_back({.name = "host:" + std::to_string(d)});
  return options;
}
penstock::graph::PlanOptions OneDevice() { return HostDevices(1); }

// Microseconds of this thread's own time: a plan is made by one thread, and a busy machine takes it off its core.
double ThreadTime() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}
double TimeOf(const std::function<void()>& work) {
  const double start = ThreadTime();
  work();
  return ThreadTime() - start;
}

class Planning {
 public:
  Planning(const Shape& shape, const Size& size, Report& report)
      : shape_(shape), size_(size), report_(report), graph_(shape.name) {
    shape.add(graph_, size.nodes);
  }

  void Run() {
    const penstock::graph::PlanOptions devices = OneDevice();
    std::vector<double> times;
    penstock::graph::Plan last;
    for (int r = 0; r <= size_.repeats; ++r) {
      absl::StatusOr<penstock::graph::Plan> plan = absl::UnknownError("");
      const double time = TimeOf([&] { plan = penstock::graph::MakePlan(graph_.model(), devices); });
      last = Must(std::move(plan));
      if (r > 0) times.push_back(time / size_.nodes);  // the first is for warming up
    }
    const auto waits = std::count_if(last.commands.begin(), last.commands.begin() + last.epilogue_begin,
                                     [](const auto& c) { return c.op == penstock::graph::Command::Op::kWait; });
    report_.Alone(Title() + ": plan, " + std::to_string(waits) + " waits, " + std::to_string(last.events.size()) +
                      " events, " + std::to_string(last.lanes.size()) + " lanes",
                  "us a node", SpreadOf(times), size_.nodes == 10000 ? AtMost(SpreadOf(times).median, 1) : "-");
  }

  // The passes one by one, over the same draft.
  void RunPasses() {
    const penstock::graph::PlanOptions devices = OneDevice();
    std::vector<std::vector<double>> times(penstock::graph::Passes().size() + 3);
    for (int r = 0; r < size_.repeats; ++r) {
      std::unique_ptr<penstock::graph::Draft> read;
      size_t at = 0;
      times[at++].push_back(PerNode([&] { read = std::make_unique<penstock::graph::Draft>(graph_.model(), devices); }));
      penstock::graph::Draft& draft = *read;
      for (const penstock::graph::Pass& pass : penstock::graph::Passes()) {
        times[at++].push_back(PerNode([&] { pass.run(draft); }));
      }
      penstock::graph::Plan plan;
      times[at++].push_back(PerNode([&] { plan = Lower(draft); }));
      times[at].push_back(PerNode([&] { read.reset(); }));
    }
    size_t at = 0;
    Row("Draft", times[at++]);
    for (const penstock::graph::Pass& pass : penstock::graph::Passes()) Row(pass.name, times[at++]);
    Row("Lower", times[at++]);
    Row("~Draft", times[at]);
  }

  // On eight devices: the tasks, the assignments that are not trivial, and all of it.
  void RunPlacement() {
    namespace pg = penstock::graph;
    const pg::PlanOptions devices = HostDevices(8);
    pg::PlaceTasks tasks;
    std::vector<double> reading, assigning, all;
    std::string taken;
    for (int r = 0; r <= std::min(size_.repeats, 7); ++r) {
      const ps::MachineFigures figures = pg::AssumeFigures(nullptr, devices.devices);
      const double reads = TimeOf([&] { tasks = pg::MakePlaceTasks(graph_.model(), devices, figures); });
      const double assigns = TimeOf([&] {
        Must(pg::AssignByAffinity(tasks.graph, 0).status());
        Must(pg::AssignByHeft(tasks.graph).status());
      });
      absl::StatusOr<pg::PlacedPlan> placed = absl::UnknownError("");
      const double chooses = TimeOf([&] { placed = pg::ChoosePlacement(graph_.model(), devices, {}); });
      const pg::PlacedPlan chosen = Must(std::move(placed));
      for (const auto& candidate : chosen.candidates) {
        if (candidate.taken) taken = candidate.name;
      }
      if (r == 0) continue;  // for warming up
      reading.push_back(reads / size_.nodes);
      assigning.push_back(assigns / size_.nodes);
      all.push_back(chooses / size_.nodes);
    }
    const std::string title = Title() + " on 8 devices: ";
    report_.Alone(title + "tasks", "us a node", SpreadOf(reading), "-");
    report_.Alone(title + "assignments", "us a node", SpreadOf(assigning), AtMost(SpreadOf(assigning).median, 3));
    report_.Alone(title + "all of the placement, taken: " + taken, "us a node", SpreadOf(all),
                  AtMost(SpreadOf(all).median, 10));
  }

  void RunCompile(ps::Runtime& runtime) {
    std::vector<double> times;
    for (int r = 0; r < std::min(size_.repeats, 7); ++r) {
      absl::StatusOr<ps::Executable> exec = absl::UnknownError("");
      times.push_back(TimeOf([&] { exec = runtime.Compile(graph_, {.slots = 1}); }) / size_.nodes);
      Must(exec.status());
    }
    report_.Alone(Title() + ": Compile on a host device", "us a node", SpreadOf(times), "-");
  }

 private:
  // Nanoseconds.
  double PerNode(const std::function<void()>& work) const { return 1000 * TimeOf(work) / size_.nodes; }
  std::string Title() const { return std::string(shape_.name) + ", " + std::to_string(size_.nodes) + " nodes"; }
  void Row(const char* pass, const std::vector<double>& times) {
    report_.Alone(Title() + ": pass " + pass, "ns a node", SpreadOf(times), "-");
  }

  const Shape& shape_;
  const Size size_;
  Report& report_;
  ps::Graph graph_;
};

void PlanParts(const penstock::graph::Folded& folded, const penstock::graph::PlanOptions& devices) {
  Must(penstock::graph::MakePlan(*folded.model, devices).status());
  for (const auto& control : folded.controls) {
    for (const penstock::graph::FoldedPart& part : control->condition) PlanParts(part.folded, devices);
    for (const penstock::graph::FoldedPart& part : control->bodies) PlanParts(part.folded, devices);
  }
}

// What Compile does with a graph that has constructs, until all its plans are made, for each node of a body.
void RunConstructs(const Size& size, Report& report) {
  constexpr int kNodes = 10;
  const int count = size.nodes / kNodes;
  ps::Graph graph("ifs");
  AddIfs(graph, count, kNodes);
  const penstock::graph::PlanOptions devices = OneDevice();
  std::vector<double> check, fold, plan, all;
  for (int r = 0; r <= size.repeats; ++r) {
    penstock::graph::Folded folded;
    const auto model = std::make_shared<penstock::Model>(graph.model());
    const double checking = TimeOf([&] { Must(penstock::graph::CheckGraph(*model, devices)); });
    const double folding =
        TimeOf([&] { folded = penstock::graph::Fold(model, penstock::graph::ChooseLowerings(*model, {}, "")); });
    const double planning = TimeOf([&] { PlanParts(folded, devices); });
    if (r == 0) continue;  // for warming up
    check.push_back(1000 * checking / size.nodes);
    fold.push_back(1000 * folding / size.nodes);
    plan.push_back(1000 * planning / size.nodes);
    all.push_back((checking + folding + planning) / size.nodes);
  }
  const std::string title = std::to_string(count) + " Ifs of " + std::to_string(kNodes) + " nodes: ";
  report.Alone(title + "check", "ns a node", SpreadOf(check), "-");
  report.Alone(title + "fold", "ns a node", SpreadOf(fold), "-");
  report.Alone(title + "plan all parts", "ns a node", SpreadOf(plan), "-");
  report.Alone(title + "all of it", "us a node", SpreadOf(all), AtMost(SpreadOf(all).median, 1.5));
}

void Main(const Options& options) {
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1}));
  const std::vector<Size> sizes =
      options.quick ? std::vector<Size>{{50, 1}}
                    : std::vector<Size>{{1000, options.repeats}, {10000, options.repeats}, {100000, 7}};
  Report report("Planning a graph");
  report.Note("CPU time of the planning thread, per declared node; medians of " + std::to_string(options.repeats) +
              " repeats, of 7 for 100 000 nodes.");
  for (const Shape& shape : kShapes) {
    for (const Size& size : sizes) Planning(shape, size, report).Run();
  }
  for (const Shape& shape : kShapes) {
    Planning planning(shape, sizes[sizes.size() / 2], report);
    planning.RunPasses();
    planning.RunPlacement();
    planning.RunCompile(runtime);
  }
  RunConstructs(sizes[sizes.size() / 2], report);
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "plan", "What planning a graph costs."));
    return 0;
  });
}

// What it costs to declare a graph again in every step (graph_cache.h): the function that declares 1000 nodes, timed
// from within, and the whole launch beside that of an executable that was compiled by hand.
//
// Half of the nodes take a plain argument, half a functor with state; they have one access or two, of two buffers. The
// names are const char*, as literals are. In graph mode a launch sets the nodes of which something has changed.
//
// Works on a host device, whose nodes have next to nothing to do. A step is declared when the one before has ended.
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

struct Axpy {
  float a;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const float* x, float* y) const { y[i] += a * x[i]; }
};
struct Add {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, float* y, float a) const { y[i] += a; }
};

constexpr int64_t kElements = 16;

class Steps {
 public:
  Steps(ps::Runtime& runtime, int nodes, ps::Mode mode)
      : cache_(runtime, {.compile = {.slots = 1, .mode = mode}}), memory_(static_cast<size_t>(kElements)) {
    for (int i = 0; i < nodes; ++i) names_.push_back("node " + std::to_string(i));
    ps::Graph graph("step");
    const Buffer y = Declare(graph, 0, 0);
    exec_ = Must(runtime.Compile(graph, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
    io_.Set(y, memory_);
  }

  // Microseconds of declaring, and of the launch with it. What is not new is as in the step before.
  Sample DeclarationMatcher(bool all) {
    ++step_;
    const auto value = static_cast<float>(step_ % 97);
    Sample sample;
    const Clock::time_point start = Clock::now();
    ps::Run run = Must(cache_.Launch([&](ps::Graph& graph, ps::Bindings& io) {
      const Clock::time_point begin = Clock::now();
      const Buffer y = Declare(graph, value, all ? value : 0);
      sample.submit = Microseconds(Clock::now() - begin);
      if (!bound_) io.Set(y, memory_);
    }));
    sample.total = Microseconds(Clock::now() - start);
    bound_ = true;
    Must(run.Wait());
    return sample;
  }
  // A graph made from nothing, and thrown away.
  Sample Anew() const {
    const Clock::time_point start = Clock::now();
    ps::Graph graph("step");
    Declare(graph, 1, 1);
    const double time = Microseconds(Clock::now() - start);
    return {time, time};
  }
  Sample Launch() {
    const Clock::time_point start = Clock::now();
    ps::Run run = Must(exec_.Launch(io_));
    const double time = Microseconds(Clock::now() - start);
    Must(run.Wait());
    return {0, time};
  }
  void Check() const {
    if (cache_.counts().compiled != 1) Fail("a step was compiled anew");
  }

 private:
  using Buffer = ps::BufferHandle<float>;

  // `one`: what the middle node takes, `all`: what the others do.
  Buffer Declare(ps::Graph& graph, float one, float all) const {
    const Buffer x = graph.Buffer<float>("x", kElements), y = graph.InOut<float>("y", kElements);
    graph.Fill("x is 1", x, 1.f);
    for (size_t i = 0; i < names_.size(); ++i) {
      const float value = i == names_.size() / 2 ? one : all;
      const char* const name = names_[i].c_str();
      if (i % 2 == 0) graph.ParallelFor(name, kElements, Axpy{value}, ps::Read(x), ps::ReadWrite(y));
      else graph.ParallelFor(name, kElements, Add{}, ps::ReadWrite(y), value);
    }
    return y;
  }

  ps::GraphCache cache_;
  std::vector<float> memory_;
  std::vector<std::string> names_;
  ps::Executable exec_;
  ps::Bindings io_;
  int step_ = 0;
  bool bound_ = false;
};

void MeasureMode(ps::Runtime& runtime, const char* title, int nodes, ps::Mode mode, const Options& options,
                 Report& report) {
  Steps one(runtime, nodes, mode), all(runtime, nodes, mode);
  std::vector<Way> ways;
  ways.push_back({Kind::kPenstock, "declared again, one new value", [&] { return one.DeclarationMatcher(false); }});
  ways.push_back({Kind::kPenstock, "declared again, all values new", [&] { return all.DeclarationMatcher(true); }});
  ways.push_back({Kind::kPenstock, "declared on a fresh graph", [&] { return one.Anew(); }});
  ways.push_back({Kind::kPenstock, "compiled once", [&] { return one.Launch(); }});
  Measure(ways, options.quick ? 2 : 20, options.repeats);
  one.Check();
  all.Check();
  const double nanoseconds = 1000.0 / nodes;
  const auto row = [&](const Way& way, const char* what, double Sample::* figure, double most) {
    const Spread time = SpreadOf(way, figure, nanoseconds);
    report.Alone(std::string(title) + ": " + what + ", " + way.name, "ns a node", time,
                 most > 0 ? AtMost(time.median, most) : "-");
  };
  row(ways[0], "declaring", &Sample::submit, 100);
  row(ways[1], "declaring", &Sample::submit, 0);
  row(ways[2], "declaring", &Sample::submit, 0);
  row(ways[0], "the whole launch", &Sample::total, 0);
  row(ways[1], "the whole launch", &Sample::total, 0);
  row(ways[3], "the whole launch", &Sample::total, 0);
}

void Main(const Options& options) {
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1}));
  const int nodes = options.quick ? 50 : 1000;
  Report report("Declaring a graph again");
  report.Note("A step of " + std::to_string(nodes) + " nodes on a host device; medians of " +
              std::to_string(options.repeats) + " repeats.");
  MeasureMode(runtime, "stream mode", nodes, ps::Mode::kStream, options, report);
  MeasureMode(runtime, "graph mode", nodes, ps::Mode::kGraph, options, report);
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "declare_again", "What declaring a graph again costs."));
    return 0;
  });
}

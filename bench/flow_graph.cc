// Penstock on a host device against oneTBB's flow graph: a DAG of 16 layers of 32 tasks, each behind one to three of
// the layer before, of 50 us of arithmetic each, and of next to nothing, both with two threads.
//
// Either graph is made once and run again and again. A task reads the words of those before it and writes its own;
// every word of every run is checked. TBB's nodes are continue_nodes, and its second thread is the one that waits.
// Penstock's are Host nodes, which two workers run, or ParallelFor nodes of one element, which the two threads of the
// host device run; there who waits sleeps.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

namespace flow = oneapi::tbb::flow;

constexpr int kThreads = 2;
constexpr int kWidth = 32;
constexpr double kTaskUs = 50;
constexpr uint32_t kPoison = 0xDEADBEEF;

// What a task makes of its words: so many rounds, each of which needs the one before.
PENSTOCK_HOST_DEVICE inline uint32_t Made(uint32_t own, uint32_t a, uint32_t b, uint32_t c, int rounds) {
  uint32_t x = own * 2654435761u + a * 3 + b * 5 + c * 7;
  for (int r = 0; r < rounds; ++r) x = (x ^ (x >> 15)) * 1664525u + 1013904223u;
  return x;
}

struct Task {
  uint32_t own;
  int rounds;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                                       uint32_t* out) const {
    *out = Made(own, *a, *b, *c, rounds);
  }
};

double ThreadTime() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

// Rounds that take so many microseconds of this thread's own time.
int RoundsOf(double microseconds) {
  constexpr int kRounds = 200'000;
  volatile uint32_t word = 1;
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const double begin = ThreadTime();
    word = Made(word, 1, 2, 3, kRounds);
    times.push_back(ThreadTime() - begin);
  }
  return static_cast<int>(kRounds * microseconds / SpreadOf(times).median);
}

// Word 0 is the input, which the first layer reads; task t writes word t + 1.
struct Dag {
  std::vector<Task> tasks;
  std::vector<std::array<size_t, 3>> reads;  // words

  Dag(int layers, int rounds) {
    std::mt19937 random(20281);
    for (int t = 0; t < layers * kWidth; ++t) {
      tasks.push_back({static_cast<uint32_t>(random()), rounds});
      std::array<size_t, 3> words{};
      const int first = (t / kWidth - 1) * kWidth + 1, many = 1 + static_cast<int>(random() % 3);
      for (int r = 0; t >= kWidth && r < 3; ++r) {
        words[static_cast<size_t>(r)] = r < many ? static_cast<size_t>(first) + random() % kWidth : words[0];
      }
      reads.push_back(words);
    }
  }
  size_t size() const { return tasks.size(); }
  void Do(size_t t, std::vector<uint32_t>& words) const {
    const auto& [a, b, c] = reads[t];
    tasks[t](0, &words[a], &words[b], &words[c], &words[t + 1]);
  }
  std::vector<uint32_t> Right(uint32_t input) const {
    std::vector<uint32_t> words(size() + 1, input);
    for (size_t t = 0; t < size(); ++t) Do(t, words);
    return words;
  }
};

// Policy: flow::queueing, or flow::lightweight, whose tasks run where their last predecessor has ended.
template <class Policy>
class FlowDag {
 public:
  FlowDag(const Dag& dag, std::vector<uint32_t>& words) : begin_(graph_) {
    for (size_t t = 0; t < dag.size(); ++t) {
      nodes_.push_back(std::make_unique<Node>(graph_, [&dag, &words, t](const flow::continue_msg&) {
        dag.Do(t, words);
        return flow::continue_msg();
      }));
      std::vector<size_t> before(dag.reads[t].begin(), dag.reads[t].end());
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      for (const size_t word : before) {
        if (word == 0) flow::make_edge(begin_, *nodes_[t]);
        else flow::make_edge(*nodes_[word - 1], *nodes_[t]);
      }
    }
  }
  void Run() {
    begin_.try_put(flow::continue_msg());
    graph_.wait_for_all();
  }

 private:
  using Node = flow::continue_node<flow::continue_msg, Policy>;
  flow::graph graph_;
  flow::broadcast_node<flow::continue_msg> begin_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

class PenstockDag {
 public:
  enum class As { kHost, kParallelFor };

  PenstockDag(ps::Runtime& runtime, const Dag& dag, std::vector<uint32_t>& memory, As as, ps::Mode mode) {
    ps::Graph graph("dag");
    const auto words = graph.InOut<uint32_t>("words", static_cast<int64_t>(dag.size()) + 1);
    const auto word = [](size_t w) { return ps::Slice({static_cast<int64_t>(w)}, {1}); };
    for (size_t t = 0; t < dag.size(); ++t) {
      const auto& [a, b, c] = dag.reads[t];
      const Task& task = dag.tasks[t];
      const std::string name = "task " + std::to_string(t);
      if (as == As::kHost) {
        using Words = std::span<const uint32_t>;
        graph.Host(
            name, [task](Words x, Words y, Words z, std::span<uint32_t> out) { task(0, &x[0], &y[0], &z[0], &out[0]); },
            ps::Read(words, word(a)), ps::Read(words, word(b)), ps::Read(words, word(c)),
            ps::Write(words, word(t + 1)));
      } else {
        graph.ParallelFor(name, 1, task, ps::Read(words, word(a)), ps::Read(words, word(b)), ps::Read(words, word(c)),
                          ps::Write(words, word(t + 1)));
      }
    }
    exec_ = Must(runtime.Compile(graph, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
    io_.Set(words, memory);
  }
  void Run() { Must(Must(exec_.Launch(io_)).Wait()); }

 private:
  ps::Executable exec_;
  ps::Bindings io_;
};

// All ways of running one DAG, with the words that they share.
class Race {
 public:
  Race(const Dag& dag, const Options& options)
      : dag_(dag),
        words_(dag.size() + 1),
        queueing_(dag, words_),
        lightweight_(dag, words_),
        host_(runtime_, dag, words_, PenstockDag::As::kHost, ps::Mode::kAuto),
        graphs_(runtime_, dag, words_, PenstockDag::As::kParallelFor, ps::Mode::kGraph),
        streams_(runtime_, dag, words_, PenstockDag::As::kParallelFor, ps::Mode::kStream) {
    Add(Kind::kRaw, "TBB, continue_node", queueing_);
    Add(Kind::kRaw, "TBB, lightweight continue_node", lightweight_);
    Add(Kind::kPenstock, "Penstock, Host nodes", host_);
    Add(Kind::kPenstock, "Penstock, ParallelFor nodes, graph mode", graphs_);
    Add(Kind::kPenstock, "Penstock, ParallelFor nodes, stream mode", streams_);
    Measure(ways_, options.quick ? 1 : 3, options.repeats);
  }
  const std::vector<Way>& ways() const { return ways_; }

 private:
  template <class Graph>
  void Add(Kind kind, const std::string& name, Graph& graph) {
    ways_.push_back({kind, name, [this, name, &graph] { return Timed(name, [&] { graph.Run(); }); }});
  }
  Sample Timed(const std::string& name, const std::function<void()>& run) {
    const auto input = static_cast<uint32_t>(random_());
    std::fill(words_.begin(), words_.end(), kPoison);
    words_[0] = input;
    const Clock::time_point begin = Clock::now();
    run();
    const double time = Microseconds(Clock::now() - begin);
    if (words_ != dag_.Right(input)) Fail(name + ": wrong result");
    return {0, time};
  }

  const Dag& dag_;
  std::mt19937 random_{4711};
  std::vector<uint32_t> words_;
  ps::Runtime runtime_ =
      Must(ps::Runtime::Create({.devices = "host", .workers = kThreads, .host_device_threads = kThreads}));
  FlowDag<flow::queueing> queueing_;
  FlowDag<flow::lightweight> lightweight_;
  PenstockDag host_, graphs_, streams_;
  std::vector<Way> ways_;
};

// CsrRows for each of Penstock's ways, per node. `most`: of the best of them, in time; 0: no target.
void Tell(const std::string& what, const Dag& dag, const Race& race, double most, Report& report) {
  const double each = 1.0 / static_cast<double>(dag.size());
  const Spread raw = SpreadOf(BestRaw(race.ways(), &Sample::total), &Sample::total, each);
  const Way& best = Best(race.ways(), Kind::kPenstock, &Sample::total);
  for (const Way& way : race.ways()) {
    if (way.kind != Kind::kPenstock) continue;
    report.Compare(what + ", " + way.name, "us a node", raw, SpreadOf(way, &Sample::total, each),
                   &way == &best ? most : 0);
  }
  std::vector<Way> ways = race.ways();
  report.Details(what, "us a node", ways, each);
}

void Main(const Options& options) {
  const oneapi::tbb::global_control threads(oneapi::tbb::global_control::max_allowed_parallelism, kThreads);
  const int layers = options.quick ? 2 : 16;
  const Dag long_tasks(layers, RoundsOf(kTaskUs)), empty_tasks(layers, 0);
  Report report("A flow graph on a host device");
  report.Note(
      std::to_string(layers) + " layers of " + std::to_string(kWidth) +
      " tasks, each behind one to three of the layer before, on two threads. Raw is the better of TBB's. Medians "
      "of " +
      std::to_string(options.repeats) + " runs each, the ways in turn; every word of every run is checked.");
  Tell("50 us a task", long_tasks, Race(long_tasks, options), 1 / 0.9, report);
  Tell("empty tasks", empty_tasks, Race(empty_tasks, options), 0, report);
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(
        bench::ParseOptions(argc, argv, "flow_graph", "Penstock on a host device against oneTBB's flow graph."));
    return 0;
  });
}

// Loops and branches of many small kernels: While of a thousand iterations, If and Switch, and the end of a loop that
// is cancelled. Penstock's, decided by the device and by the host, against CUDA by hand: a conditional node, a host
// loop that reads a word back after each iteration, and graphs of eight predicated iterations of which two are ahead of
// the host.
//
// A kernel adds 1 to each of 256 floats. The device's loops by hand have the same setter as Penstock: it looks at a
// word that a kernel beside the iteration has taken over from the host. The floats at the end show how often each
// kernel ran.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "by_hand.cuh"
#include "harness.h"
#include "penstock/ps.h"
#include "solver.cuh"

namespace bench {
namespace {

constexpr int kIterations = 1000;

// Kernels of one iteration: `chain` one after the other, or `wide` beside each other.
enum class Asks { kNobody, kInline, kWorker };
struct Body {
  int chain = 1;
  int wide = 0;
  Asks asks = Asks::kNobody;  // a Host node at the iteration's end, by who calls it
  std::string text() const {
    return wide > 0 ? std::to_string(wide) + " kernels side by side" : "a chain of " + std::to_string(chain);
  }
  int arrays() const { return std::max(wide, 1); }
  int kernels() const { return std::max(wide, chain); }
};

struct AddOne {
  PS_HOST_DEVICE void operator()(int64_t i, ps::View<float> x) const { x(i) += 1; }
};
struct Begin {
  PS_HOST_DEVICE void operator()(int64_t, int32_t from, int32_t* left) const { *left = from; }
};
struct AddOneAndCount {
  PS_HOST_DEVICE void operator()(int64_t i, ps::View<float> x, int32_t* left) const {
    x(i) += 1;
    if (i == 0) --*left;
  }
};
struct IsLeft {
  PS_HOST_DEVICE bool operator()(const int32_t* left) const { return *left > 0; }
};
struct Pick {
  PS_HOST_DEVICE int32_t operator()(const int32_t* value) const { return *value; }
};

void CheckFloats(const std::vector<float>& x, int64_t expected) {
  for (const float value : x) {
    if (value == static_cast<float>(expected)) continue;
    Fail("a kernel ran " + std::to_string(value) + " times in place of " + std::to_string(expected));
  }
}

class PenstockLoop {
 public:
  PenstockLoop(ps::Runtime& runtime, const Body& body, int iterations, ps::Lowering lowering, ps::Mode mode)
      : body_(body), iterations_(iterations) {
    ps::Graph g("loop");
    auto from = g.Param<int32_t>("from");
    auto left = g.Buffer<int32_t>("left", 1);
    std::vector<ps::BufferHandle<float>> x;
    for (int a = 0; a < body.arrays(); ++a) {
      x_.push_back(Must(runtime.MakeState<float>(ps::Name("x", a), kWidth)));
      x.push_back(g.Use(x_.back()));
    }
    g.ParallelFor("begin", 1, Begin{}, from, ps::Write(left));
    g.While("loop", ps::When(IsLeft{}, ps::Read(left)), {.max = 2'000'000'000}, [&](ps::Graph& in) {
      for (int k = 0; k < body.kernels(); ++k) {
        const auto& on = x[body.wide > 0 ? static_cast<size_t>(k) : 0];
        if (k == 0) in.ParallelFor("count", kWidth, AddOneAndCount{}, ps::ReadWrite(on), ps::ReadWrite(left));
        else in.ParallelFor(ps::Name("add", k), kWidth, AddOne{}, ps::ReadWrite(on));
      }
      if (body.asks == Asks::kNobody) return;
      ps::NodeRef see = in.Host("see", [this](std::span<const int32_t>) { ++seen_; }, ps::Read(left));
      if (body.asks == Asks::kInline) see.Inline();
      else see.Infallible();
    });
    exec_ = Must(runtime.Compile(g, {.slots = 1, .mode = mode, .constructs = lowering}));
    io_ = exec_.bindings();
    io_.Set(from, iterations);
  }
  void Clear() {
    seen_ = 0;
    for (ps::State<float>& x : x_) Must(x.Set(std::vector<float>(kWidth)));
  }
  ps::Run Launch() { return Must(exec_.Launch(io_)); }
  Sample Run() {
    Clear();
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    const Clock::time_point end = Clock::now();
    if (seen_ != (body_.asks == Asks::kNobody ? 0 : iterations_))
      Fail("a host node was called too often or not enough");
    const int64_t each = int64_t{iterations_} * (body_.wide > 0 ? 1 : body_.chain);
    std::vector<float> floats(kWidth);
    for (ps::State<float>& x : x_) {
      Must(x.Read(floats));
      CheckFloats(floats, each);
    }
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const Body body_;
  const int iterations_;
  int seen_ = 0;
  std::vector<ps::State<float>> x_;
  ps::Executable exec_;
  ps::Bindings io_;
};

// An If or a Switch between two kernels, with bodies of two; or these four without it.
class PenstockPick {
 public:
  PenstockPick(ps::Runtime& runtime, int32_t value, int bodies, ps::Lowering lowering)
      : x_(Must(runtime.MakeState<float>("x", kWidth))), value_(Must(runtime.MakeState<int32_t>("value", 1))) {
    Must(value_.Set(std::vector<int32_t>{value}));
    ps::Graph g("pick");
    auto x = g.Use(x_);
    auto pick = g.Use(value_);
    const auto two = [&](ps::Graph& in) {
      in.ParallelFor("first", kWidth, AddOne{}, ps::ReadWrite(x));
      in.ParallelFor("second", kWidth, AddOne{}, ps::ReadWrite(x));
    };
    g.ParallelFor("before", kWidth, AddOne{}, ps::ReadWrite(x));
    if (bodies == 0) two(g);
    else if (bodies == 1) g.If("if", ps::When(IsLeft{}, ps::Read(pick)), two);
    else g.Switch("switch", ps::When(Pick{}, ps::Read(pick)), two, two, two, two);
    g.ParallelFor("after", kWidth, AddOne{}, ps::ReadWrite(x));
    exec_ = Must(runtime.Compile(g, {.slots = 1, .mode = ps::Mode::kGraph, .constructs = lowering}));
    io_ = exec_.bindings();
    expected_ = bodies == 1 && value == 0 ? 2 : 4;
  }
  Sample Run() {
    Must(x_.Set(std::vector<float>(kWidth)));
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    const Clock::time_point end = Clock::now();
    std::vector<float> floats(kWidth);
    Must(x_.Read(floats));
    CheckFloats(floats, expected_);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  ps::State<float> x_;
  ps::State<int32_t> value_;
  ps::Executable exec_;
  ps::Bindings io_;
  int64_t expected_ = 0;
};

// A way by hand: cleared before, timed, checked.
template <class Loop>
Sample Timed(const HandState& state, const Loop& loop, int64_t each) {
  state.Clear();
  const Clock::time_point begin = Clock::now();
  loop.Run();
  const Clock::time_point end = Clock::now();
  CheckFloats(state.Floats(), each);
  return {0, Microseconds(end - begin)};
}

Report Loops(ps::Runtime& runtime, const Options& options) {
  Report report("Loops");
  report.Note("While of 1000 iterations, the time of one.");
  const int iterations = options.quick ? 20 : kIterations;
  for (const Body& body : {Body{.chain = 1}, Body{.chain = 10}, Body{.chain = 100}, Body{.wide = 10}}) {
    HandState state(body.arrays());
    const HandBody hand{body.chain, body.wide};
    const int64_t each = int64_t{iterations} * (body.wide > 0 ? 1 : body.chain);
    const DeviceLoopByHand on_device(state, hand, iterations);
    const ReadBackByHand read_back(state, hand, iterations);
    const RunAheadByHand ahead(state, hand, iterations);
    PenstockLoop device(runtime, body, iterations, ps::Lowering::kDevice, ps::Mode::kGraph);
    PenstockLoop device_stream(runtime, body, iterations, ps::Lowering::kDevice, ps::Mode::kStream);
    PenstockLoop host(runtime, body, iterations, ps::Lowering::kHost, ps::Mode::kGraph);
    PenstockLoop by_default(runtime, body, iterations, ps::Lowering::kAuto, ps::Mode::kAuto);
    std::vector<Way> ways;
    ways.push_back({Kind::kRaw, "a While node", [&] { return Timed(state, on_device, each); }});
    ways.push_back({Kind::kRaw, "read back each iteration", [&] { return Timed(state, read_back, each); }, 1});
    ways.push_back({Kind::kRaw, "8 predicated iterations a graph", [&] { return Timed(state, ahead, each); }, 1});
    ways.push_back({Kind::kPenstock, "the device decides, in a graph", [&] { return device.Run(); }});
    ways.push_back({Kind::kPenstock, "the device decides, on a stream", [&] { return device_stream.Run(); }});
    ways.push_back({Kind::kPenstock, "the host decides", [&] { return host.Run(); }, 1});
    ways.push_back({Kind::kPenstock, "by default", [&] { return by_default.Run(); }, 2});
    Measure(ways, 3, options.repeats);
    const double scale = 1.0 / iterations;
    report.Compare("the device decides, " + body.text() + "; raw: a While node", "us",
                   SpreadOf(Best(ways, Kind::kRaw, &Sample::total), &Sample::total, scale),
                   SpreadOf(Best(ways, Kind::kPenstock, &Sample::total), &Sample::total, scale), 0);
    report.Compare("the host decides, " + body.text() + "; raw: the best with the host", "us",
                   SpreadOf(Best(ways, Kind::kRaw, &Sample::total, 1), &Sample::total, scale),
                   SpreadOf(Best(ways, Kind::kPenstock, &Sample::total, 1), &Sample::total, scale), 0);
    const Way& best_of_all = [&]() -> const Way& {
      const Way &a = Best(ways, Kind::kRaw, &Sample::total), &b = Best(ways, Kind::kRaw, &Sample::total, 1);
      return SpreadOf(a, &Sample::total, 1).median < SpreadOf(b, &Sample::total, 1).median ? a : b;
    }();
    report.Compare("by default, " + body.text() + "; raw: the best by hand", "us",
                   SpreadOf(best_of_all, &Sample::total, scale),
                   SpreadOf(Best(ways, Kind::kPenstock, &Sample::total, 2), &Sample::total, scale), 0);
    report.Details("an iteration, " + body.text(), "us", ways, scale);
  }
  return report;
}

Report HostNodes(ps::Runtime& runtime, const Options& options) {
  Report report("Host nodes");
  report.Note("The same with one kernel, and a Host node that reads a number in each iteration.");
  const int iterations = options.quick ? 20 : kIterations;
  PenstockLoop without(runtime, {}, iterations, ps::Lowering::kDevice, ps::Mode::kGraph);
  PenstockLoop by_inline(runtime, {.asks = Asks::kInline}, iterations, ps::Lowering::kDevice, ps::Mode::kGraph);
  PenstockLoop by_worker(runtime, {.asks = Asks::kWorker}, iterations, ps::Lowering::kDevice, ps::Mode::kGraph);
  std::vector<Way> ways;
  ways.push_back({Kind::kScale, "without it", [&] { return without.Run(); }});
  ways.push_back({Kind::kPenstock, "Inline", [&] { return by_inline.Run(); }});
  ways.push_back({Kind::kPenstock, "Infallible", [&] { return by_worker.Run(); }});
  Measure(ways, 3, options.repeats);
  const double scale = 1.0 / iterations;
  for (size_t w : {size_t{1}, size_t{2}}) {
    report.CompareSums("a Host node, " + ways[w].name + "; raw: without it", "us",
                       SpreadOf(ways[0], &Sample::total, scale), SpreadOf(ways[w], &Sample::total, scale), 6);
  }
  report.Details("an iteration", "us", ways, scale);
  return report;
}

Report Branches(ps::Runtime& runtime, const Options& options) {
  Report report("Branches");
  report.Note("Two kernels with an If or a Switch between them, whose bodies are two kernels.");
  struct Case {
    const char* name;
    int32_t value;
    int bodies;
  };
  HandState state(1);
  uint32_t* const value = MakeDeviceMemory<uint32_t>(2);
  for (const Case& c : {Case{"If, taken", 1, 1}, Case{"If, not taken", 0, 1}, Case{"Switch of 4", 3, 4}}) {
    const auto picked = static_cast<uint32_t>(c.value);
    Check(cudaMemcpy(value, &picked, sizeof(picked), cudaMemcpyHostToDevice), "setting the value");
    const PickByHand plain(state, value, 0, true);
    const PickByHand hand(state, value, static_cast<unsigned>(c.bodies), false);
    PenstockPick no_branch(runtime, c.value, 0, ps::Lowering::kAuto);
    PenstockPick device(runtime, c.value, c.bodies, ps::Lowering::kDevice);
    PenstockPick host(runtime, c.value, c.bodies, ps::Lowering::kHost);
    const int64_t each = c.bodies == 1 && c.value == 0 ? 2 : 4;
    std::vector<Way> ways;
    ways.push_back({Kind::kRaw, "a conditional node", [&] { return Timed(state, hand, each); }});
    ways.push_back({Kind::kScale, "by hand, without a branch", [&] { return Timed(state, plain, 4); }});
    ways.push_back({Kind::kPenstock, "the device decides", [&] { return device.Run(); }});
    ways.push_back({Kind::kPenstock, "the host decides", [&] { return host.Run(); }, 1});
    ways.push_back({Kind::kPenstock, "without a branch", [&] { return no_branch.Run(); }, 2});
    Measure(ways, 3, options.repeats);
    report.CompareSums(std::string(c.name) + "; raw: a conditional node", "us",
                       SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1),
                       SpreadOf(Best(ways, Kind::kPenstock, &Sample::total), &Sample::total, 1), 0.5);
    report.Details(c.name, "us", ways, 1);
  }
  return report;
}

Report Solvers(ps::Runtime& runtime, const Options& options) {
  Report report("Solver");
  report.Note("Conjugate gradients for a five-point matrix in single precision, to a tolerance.");
  for (const int side : {256, 1024}) {
    const std::string size = std::to_string(side) + " x " + std::to_string(side);
    constexpr int kUnrolled = 20;
    SolverByHand hand(side);
    PenstockSolver device(runtime, side, ps::Lowering::kDevice), host(runtime, side, ps::Lowering::kHost);
    PenstockSolver unrolled(runtime, side, ps::Lowering::kAuto, kUnrolled);
    std::vector<Way> ways;
    ways.push_back({Kind::kRaw, "by hand, read back each iteration", [&] { return hand.Run(); }});
    ways.push_back({Kind::kPenstock, "the device decides", [&] { return device.Run(); }});
    ways.push_back({Kind::kPenstock, "the host decides", [&] { return host.Run(); }, 1});
    Measure(ways, 1, std::max(options.repeats / 3, 3));
    if (device.Solution() != host.Solution() || device.iterations() != host.iterations()) {
      Fail("the device and the host have other results");
    }
    report.Note(size + ": " + std::to_string(device.iterations()) + " iterations, by hand " +
                std::to_string(hand.iterations()) + ".");
    std::vector<Way> plain;
    plain.push_back({Kind::kPenstock, "unrolled", [&] { return unrolled.Run(); }});
    Measure(plain, 3, options.repeats);
    const double each = 1.0 / device.iterations();
    report.Compare(size + ", an iteration; raw: by hand, read back each iteration", "us",
                   SpreadOf(ways[0], &Sample::total, 1.0 / hand.iterations()), SpreadOf(ways[1], &Sample::total, each),
                   0);
    report.Compare(size + ", an iteration; raw: Penstock unrolled in one graph", "us",
                   SpreadOf(plain[0], &Sample::total, 1.0 / kUnrolled), SpreadOf(ways[1], &Sample::total, each), 0);
    report.Details(size + ", a solution", "us", ways, 1);
  }
  return report;
}

// The time from the call of Cancel until the run has ended.
Report Cancelled(ps::Runtime& runtime, const Options& options) {
  Report report("Cancel");
  for (const Body& body : {Body{.chain = 1}, Body{.chain = 5}}) {
    PenstockLoop loop(runtime, body, 1'000'000'000, ps::Lowering::kDevice, ps::Mode::kGraph);
    HandState state(1);
    const DeviceLoopByHand hand(state, {body.chain, 0}, 1'000'000'000);
    std::vector<Way> ways;
    ways.push_back({Kind::kRaw, "by hand", [&] {
                      *state.stop = 0;
                      hand.Launch();
                      std::this_thread::sleep_for(std::chrono::milliseconds(2));
                      const Clock::time_point begin = Clock::now();
                      *static_cast<volatile uint32_t*>(state.stop) = 1;
                      Check(cudaStreamSynchronize(state.stream), "waiting");
                      return Sample{0, Microseconds(Clock::now() - begin)};
                    }});
    ways.push_back({Kind::kPenstock, "Run::Cancel", [&] {
                      ps::Run run = loop.Launch();
                      std::this_thread::sleep_for(std::chrono::milliseconds(2));
                      const Clock::time_point begin = Clock::now();
                      run.Cancel();
                      const absl::Status status = run.Wait();
                      const Clock::time_point end = Clock::now();
                      if (status.code() != absl::StatusCode::kCancelled) Fail("the loop was not cancelled");
                      loop.Clear();
                      return Sample{0, Microseconds(end - begin)};
                    }});
    Measure(ways, 1, options.repeats);
    report.Compare("a loop of 10^9 iterations, " + body.text(), "us",
                   SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1),
                   SpreadOf(Best(ways, Kind::kPenstock, &Sample::total), &Sample::total, 1), 0);
  }
  return report;
}

// On host devices, for the results.
void RunEverything(ps::Runtime& runtime) {
  for (const Body& body :
       {Body{.chain = 3}, Body{.wide = 3}, Body{.asks = Asks::kInline}, Body{.asks = Asks::kWorker}}) {
    PenstockLoop(runtime, body, 10, ps::Lowering::kDevice, ps::Mode::kGraph).Run();
    PenstockLoop(runtime, body, 10, ps::Lowering::kHost, ps::Mode::kStream).Run();
  }
  PenstockPick(runtime, 1, 1, ps::Lowering::kDevice).Run();
  PenstockPick(runtime, 0, 1, ps::Lowering::kDevice).Run();
  PenstockPick(runtime, 3, 4, ps::Lowering::kHost).Run();
  PenstockSolver device(runtime, 32, ps::Lowering::kDevice), host(runtime, 32, ps::Lowering::kHost);
  device.Run();
  host.Run();
  if (device.Solution() != host.Solution()) Fail("the device and the host have other results");
}

int Main(const Options& options) {
  ps::Runtime runtime = Must(ps::Runtime::Create());
  Report report("Loops and branches");
  if (const std::string why = WhyNoDevice(); !why.empty()) {
    RunEverything(runtime);
    report.Skip(why, "everything of Penstock has run on a host device, and its results are right");
    return 0;
  }
  const auto wants = [&](const char* part) {
    return options.parts.empty() || std::find(options.parts.begin(), options.parts.end(), part) != options.parts.end();
  };
  if (wants("loops")) report.Append(Loops(runtime, options));
  if (wants("host nodes")) report.Append(HostNodes(runtime, options));
  if (wants("branches")) report.Append(Branches(runtime, options));
  if (wants("solver")) report.Append(Solvers(runtime, options));
  if (wants("cancel")) report.Append(Cancelled(runtime, options));
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(bench::ParseOptions(argc, argv, "loops", "Loops and branches of small kernels.",
                                           {"loops", "host nodes", "branches", "solver", "cancel"}));
  });
}

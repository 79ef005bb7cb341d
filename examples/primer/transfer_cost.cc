// Primer: what it costs to bring an array to a device and its results back: small or large, in memory that is pinned or
// not, one run at a time or several. And from what size on that is faster than a plain loop. transfer_cost.md explains
// it.
//
//   transfer_cost [--devices cuda | host] [--elements 4194304]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/ps.h"

constexpr int kRuns = 24, kWarmUp = 8;  // of each graph; the first ones do not count
constexpr int kSlots = 3;  // one run is uploaded, one computed and one downloaded
constexpr int kRounds = 16;  // how much work an element is
constexpr std::string_view kPlainLoop = "plain loop";

// The work on an element: steps of a random number generator (Numerical Recipes). Unsigned integers wrap in the same
// way everywhere, so results can be compared exactly.
constexpr uint32_t kFactor = 1664525, kIncrement = 1013904223;
PS_HOST_DEVICE inline uint32_t Scramble(uint32_t value) {
  for (int r = 0; r < kRounds; ++r) value = value * kFactor + kIncrement;
  return value;
}
struct OnDevice {
  PS_HOST_DEVICE void operator()(int64_t i, const uint32_t* x, uint32_t* y) const { y[i] = Scramble(x[i]); }
};
void PlainLoop(std::span<const uint32_t> x, std::span<uint32_t> y) {
  for (size_t i = 0; i < x.size(); ++i) y[i] = Scramble(x[i]);
}

// An input, and memory for the results of as many runs as may be in flight.
struct Arrays {
  std::span<uint32_t> x;
  std::vector<std::span<uint32_t>> y;
};

// To check the results: many steps are one step with other constants.
bool IsRight(std::span<const uint32_t> x, std::span<const uint32_t> y) {
  uint32_t factor = 1, increment = 0;
  for (int r = 0; r < kRounds; ++r) factor *= kFactor, increment = increment * kFactor + kIncrement;
  return std::ranges::equal(x, y, {}, [&](uint32_t value) { return value * factor + increment; });
}

// Runs a graph of one node. It is the plain loop as a Host node if that is its name, so that the profile has its time
// too.
absl::Status Repeat(ps::Runtime& runtime, std::string_view name, int slots, const Arrays& arrays) {
  const auto n = static_cast<int64_t>(arrays.x.size());
  ps::Graph graph{ps::Name(std::string(name))};
  auto x = graph.Input<uint32_t>("x", n);
  auto y = graph.Output<uint32_t>("y", n);
  if (name == kPlainLoop) graph.Host("work", PlainLoop, ps::Read(x), ps::Write(y));
  else graph.ParallelFor("work", n, OnDevice{}, ps::Read(x), ps::Write(y));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = slots}));

  for (const std::span<uint32_t>& result : arrays.y) std::ranges::fill(result, 0);
  ps::Bindings io = exec.bindings();
  io.Set(x, arrays.x);
  std::vector<ps::Run> runs;
  for (size_t r = 0; r < kRuns; ++r) {
    if (r >= kSlots) PS_RETURN_IF_ERROR(runs[r - kSlots].Wait());  // until then its memory is its own
    PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(io.Set(y, arrays.y[r % kSlots])));
    runs.push_back(run);
  }
  for (const ps::Run& run : runs) PS_RETURN_IF_ERROR(run.Wait());
  for (const std::span<uint32_t>& result : arrays.y) {
    if (!IsRight(arrays.x, result)) return absl::InternalError(std::string(name) + " gave a wrong result");
  }
  return absl::OkStatus();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What the profile says of the runs of one graph.
struct Times {
  double copy_us = 0;  // of x to the device, the median
  double work_us = 0;  // of the kernel, or the plain loop, the median
  double run_us = 0;  // from the end of a run to the end of the next, the mean
};
Times TimesOf(const ps::Profile& profile, int64_t executable) {
  std::vector<double> copies(kRuns - kWarmUp), works(kRuns - kWarmUp);
  double first_end = std::numeric_limits<double>::max(), last_end = 0;
  for (const ps::Span& span : profile.spans) {
    if (span.executable != executable || span.run < kWarmUp) continue;
    const auto run = static_cast<size_t>(span.run - kWarmUp);
    const double us = span.end_us - span.begin_us;
    if (span.name == "upload x" || span.name == "stage x") copies[run] += us;
    if (span.name == "work") works[run] += us;
    if (span.kind == ps::SpanKind::kRun) {
      first_end = std::min(first_end, span.end_us);
      last_end = std::max(last_end, span.end_us);
    }
  }
  return {Median(copies), Median(works), (last_end - first_end) / (kRuns - kWarmUp - 1)};
}

void Show(const ps::Profile& profile) {
  std::printf("     KiB               slots  copy in us    GB/s    work us     run us  speed-up\n");
  double loop_us = 0;
  int64_t pays_from = 0;  // the first size in KiB of those that all pay
  bool pays = false;  // the size at hand
  for (const ps::Profile::Graph& graph : profile.graphs) {
    const Times times = TimesOf(profile, graph.executable);
    const auto of_work = std::ranges::find(graph.nodes, "work", &ps::Profile::Node::name);
    const int64_t bytes = of_work->read_bytes, kib = bytes / 1024;
    if (graph.name == kPlainLoop) {  // the first of each size
      if (!pays) pays_from = 0;
      pays = false;
      loop_us = times.work_us;
      std::printf("%8lld  %-10s %38.1f\n", static_cast<long long>(kib), graph.name.c_str(), loop_us);
      continue;
    }
    std::printf("%8lld  %-10s %7d %11.1f %7.2f %10.1f %10.1f %9.2f\n", static_cast<long long>(kib), graph.name.c_str(),
                graph.slots, times.copy_us, static_cast<double>(bytes) / times.copy_us / 1e3, times.work_us,
                times.run_us, loop_us / times.run_us);
    pays = pays || times.run_us < loop_us;
    if (pays && pays_from == 0) pays_from = kib;
  }
  std::printf("the device pays from %lld KiB on (0: it does not)\n", static_cast<long long>(pays ? pays_from : 0));
}

absl::Status Run(const std::string& devices, int64_t elements) {
  if (elements < 4096) return absl::InvalidArgumentError("give 4096 elements or more");
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices, .profile_spans = 100'000}));
  for (const int64_t part : {4096, 256, 16, 1}) {
    const int64_t n = elements / part;
    std::vector<std::vector<uint32_t>> vectors(1 + kSlots, std::vector<uint32_t>(static_cast<size_t>(n)));
    std::vector<ps::HostBuffer<uint32_t>> buffers(1 + kSlots);
    Arrays pageable, pinned;
    for (int a = 0; a <= kSlots; ++a) {
      PS_ASSIGN_OR_RETURN(buffers[a], runtime.MakeHostBuffer<uint32_t>(n));
      for (int64_t i = 0; i < n; ++i) vectors[a][i] = buffers[a][i] = static_cast<uint32_t>(i * 7919);
      if (a > 0) pageable.y.emplace_back(vectors[a]), pinned.y.push_back(buffers[a].span());
    }
    pageable.x = vectors[0];
    pinned.x = buffers[0].span();
    PS_RETURN_IF_ERROR(Repeat(runtime, kPlainLoop, 1, pageable));
    for (const int slots : {1, kSlots}) {
      PS_RETURN_IF_ERROR(Repeat(runtime, "not pinned", slots, pageable));
      PS_RETURN_IF_ERROR(Repeat(runtime, "pinned", slots, pinned));
    }
  }
  Show(runtime.Profile());
  std::printf("on %s; all results are right\n", runtime.devices()[0].name.c_str());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string devices;
  int64_t elements = 1 << 22;
  absl::Status status;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--devices") devices = value;
    else if (flag == "--elements") elements = std::atoll(value.c_str());
    else status = absl::InvalidArgumentError("there is no " + flag + ", but --devices LIST and --elements N");
  }
  if (status.ok()) status = Run(devices, elements);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

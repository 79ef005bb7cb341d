#include "src/cli/measure/launch_costs.h"

#include <algorithm>
#include <optional>

#include "src/cli/measure/chain.h"

namespace penstock::cli::measure {
namespace {

constexpr uint32_t kFourBytes = 0x01020304;  // equal ones would be set without a kernel, on streams
constexpr int kTimesAsOften = 10;  // a single launch is short, and its time varies

Chain::Bind TinyKernels(Graph& graph, int nodes) {
  const auto word = graph.Buffer<uint32_t>("word", 1);
  for (int i = 0; i < nodes; ++i) graph.Fill(Name("kernel", i), word, kFourBytes);
  return {};
}

// A host node before each kernel but the first.
Chain::Bind TinyKernelsAndHostNodes(Graph& graph, int nodes) {
  const auto word = graph.Buffer<uint32_t>("word", 1);
  std::optional<NodeRef> before;
  for (int i = 0; i < nodes; ++i) {
    if (before.has_value()) before = graph.Host(Name("host", i), [] {}).After(*before);
    NodeRef kernel = graph.Fill(Name("kernel", i), word, kFourBytes);
    before = before.has_value() ? kernel.After(*before) : kernel;
  }
  return {};
}

// Each of a word of its own, so that none is left out.
Chain::Declare SmallCopies(const State<uint32_t>& words, HostBuffer<uint32_t>& memory) {
  return [words, &memory](Graph& graph, int nodes) -> Chain::Bind {
    const auto host = graph.Input<uint32_t>("host", nodes, kPinned);
    std::optional<NodeRef> last;
    for (int i = 0; i < nodes; ++i) {
      const Box word = Slice({i}, {1});
      NodeRef copy = graph.Copy(Name("copy", i), Read(host, word), Write(words, word));
      if (last.has_value()) copy.After(*last);
      last = copy;
    }
    return [memory = memory.first(nodes), host](Bindings& io) { io.Set(host, memory); };
  };
}

// A variable may have chosen another mode, and what is measured would go by the wrong name.
absl::Status CheckMode(const Executable& exec, Mode wanted) {
  if (wanted == Mode::kAuto || exec.submission_report().mode == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "launches: streams and graphs cannot be told apart, since runs are submitted in another mode than asked; unset "
      "PENSTOCK_MODE and PENSTOCK_SYNC");
}

absl::StatusOr<double> MicrosPerNode(Runtime& runtime, const Chain::Declare& declare, const Effort& effort,
                                     const CompileOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(Chain chain, Chain::Lasting(runtime, declare, effort.run_us, Chain::kMostNodes, options));
  PENSTOCK_RETURN_IF_ERROR(CheckMode(chain.executable(), options.mode));
  PENSTOCK_ASSIGN_OR_RETURN(const double us, MedianOf(effort, [&] { return chain.Time(); }));
  return us / chain.nodes();
}

absl::StatusOr<double> TimeUntilLaunched(Chain& chain) {
  const double begin = Now();
  PENSTOCK_ASSIGN_OR_RETURN(const Run run, chain.Launch());
  const double us = Now() - begin;
  PENSTOCK_RETURN_IF_ERROR(run.Wait());
  return us;
}

}  // namespace

absl::StatusOr<LaunchCosts> MeasureLaunches(Runtime& runtime, int device, const Effort& effort) {
  const CompileOptions best{.device = device};
  const CompileOptions streams{.device = device, .mode = Mode::kStream}, graphs{.device = device, .mode = Mode::kGraph};
  Effort often = effort;
  often.repeats *= kTimesAsOften;
  LaunchCosts costs;
  PENSTOCK_ASSIGN_OR_RETURN(Chain one, Chain::Make(runtime, TinyKernels, 1, best));
  PENSTOCK_RETURN_IF_ERROR(one.Time().status());
  PENSTOCK_ASSIGN_OR_RETURN(costs.launch, MedianOf(often, [&] { return TimeUntilLaunched(one); }));
  PENSTOCK_ASSIGN_OR_RETURN(costs.empty_run, MedianOf(often, [&] { return one.Time(); }));
  PENSTOCK_ASSIGN_OR_RETURN(costs.stream_node, MicrosPerNode(runtime, TinyKernels, effort, streams));
  PENSTOCK_ASSIGN_OR_RETURN(costs.graph_node, MicrosPerNode(runtime, TinyKernels, effort, graphs));
  PENSTOCK_ASSIGN_OR_RETURN(const double pair, MicrosPerNode(runtime, TinyKernelsAndHostNodes, effort, streams));
  costs.host_node = std::max(0.0, pair - costs.stream_node);
  PENSTOCK_ASSIGN_OR_RETURN(HostBuffer<uint32_t> memory, runtime.MakeHostBuffer<uint32_t>(Chain::kMostNodes));
  std::fill(memory.begin(), memory.end(), kFourBytes);
  PENSTOCK_ASSIGN_OR_RETURN(const State<uint32_t> words,
                            runtime.MakeState<uint32_t>("words", Chain::kMostNodes, {}, {.device = device}));
  PENSTOCK_ASSIGN_OR_RETURN(costs.small_copy, MicrosPerNode(runtime, SmallCopies(words, memory), effort, graphs));
  return costs;
}

}  // namespace penstock::cli::measure

#include "src/cli/measure/peers.h"

#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "src/cli/measure/chain.h"
#include "src/cli/measure/copy_rig.h"

namespace penstock::cli::measure {
namespace {

constexpr int kCopiesBetweenPeers = 4;  // of 256 MiB at 400 GB/s: a run of 2.7 ms

struct PeerMemory {
  State<uint8_t> source, target;
};

// Copies of adjacent memory, one after the other.
absl::StatusOr<double> PeerRate(Runtime& runtime, const PeerMemory& from, PeerMemory& to, int64_t bytes,
                                const Effort& effort, std::span<const uint8_t> pattern) {
  const int device = to.target.device();
  const auto copies = [&](Graph& graph, int nodes) {
    std::optional<NodeRef> last;
    for (int i = 0; i < nodes; ++i) {
      const Box part = Slice({i * bytes}, {bytes});
      NodeRef copy = graph.Copy(Name("copy", i), Read(from.source, part), Write(to.target, part)).On(device);
      if (last.has_value()) copy.After(*last);
      last = copy;
    }
    return Chain::Bind();
  };
  const int most = static_cast<int>(static_cast<int64_t>(pattern.size()) / bytes);
  PENSTOCK_ASSIGN_OR_RETURN(Chain chain, Chain::Lasting(runtime, copies, effort.run_us, most, {.device = device}));
  PENSTOCK_RETURN_IF_ERROR(to.target.Reset());
  PENSTOCK_ASSIGN_OR_RETURN(const double us, MedianOf(effort, [&] { return chain.Time(); }));
  std::vector<uint8_t> copied(static_cast<size_t>(bytes * chain.nodes()));
  PENSTOCK_RETURN_IF_ERROR(to.target.Read(copied, Slice({0}, {bytes * chain.nodes()})));
  PENSTOCK_RETURN_IF_ERROR(CheckCopied(copied, pattern));
  return GigabytesPerSecond(bytes, us / chain.nodes());
}

}  // namespace

absl::StatusOr<std::vector<std::vector<double>>> PeerRates(Runtime& runtime, int64_t bytes, const Effort& effort,
                                                           const std::function<void(const std::string&)>& step) {
  const std::vector<Device>& devices = runtime.devices();
  std::vector<std::vector<double>> rates(devices.size(), std::vector<double>(devices.size()));
  if (devices.size() < 2) return rates;
  const int64_t all = kCopiesBetweenPeers * bytes;
  std::vector<uint8_t> pattern(static_cast<size_t>(all));
  FillPattern(pattern);
  std::vector<PeerMemory> memory(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    const StateOptions there{.device = static_cast<int>(d)};
    PENSTOCK_ASSIGN_OR_RETURN(memory[d].source, runtime.MakeState<uint8_t>("source", all, pattern, there));
    PENSTOCK_ASSIGN_OR_RETURN(memory[d].target, runtime.MakeState<uint8_t>("target", all, {}, there));
  }
  for (size_t from = 0; from < devices.size(); ++from) {
    for (size_t to = 0; to < devices.size(); ++to) {
      if (from == to) continue;
      step(absl::StrCat("copies from ", devices[from].name, " to ", devices[to].name));
      PENSTOCK_ASSIGN_OR_RETURN(rates[from][to], PeerRate(runtime, memory[from], memory[to], bytes, effort, pattern));
    }
  }
  return rates;
}

}  // namespace penstock::cli::measure

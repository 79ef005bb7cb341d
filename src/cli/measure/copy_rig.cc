#include "src/cli/measure/copy_rig.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::cli::measure {
namespace {

constexpr int64_t kSmallCopy = int64_t{1} << 20;  // above it, how a copy is submitted does not show
// So many runs of the other direction outlast the one that is timed.
constexpr int kRunsBeside = 3;

Route OtherWay(Route route) {
  return route == Route::kUploadBothWays ? Route::kDownloadBothWays : Route::kUploadBothWays;
}
bool IsBothWays(Route route) { return route == Route::kUploadBothWays || route == Route::kDownloadBothWays; }
bool IsStaged(Route route) { return route == Route::kStagedUpload || route == Route::kStagedDownload; }
bool IsUpload(Route route) {
  return route == Route::kUpload || route == Route::kUploadBothWays || route == Route::kStagedUpload;
}

std::span<uint8_t> FirstBytes(std::span<uint8_t> memory, int64_t bytes) {
  return memory.first(static_cast<size_t>(bytes));
}

}  // namespace

void FillPattern(std::span<uint8_t> bytes) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = (at + 1) * 0x9E3779B97F4A7C15u;
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

absl::Status CheckCopied(std::span<const uint8_t> copied, std::span<const uint8_t> from) {
  if (std::memcmp(copied.data(), from.data(), copied.size()) == 0) return absl::OkStatus();
  const auto wrong = std::mismatch(copied.begin(), copied.end(), from.begin()).first;
  return absl::DataLossError(absl::StrCat("byte ", wrong - copied.begin(), " of ", copied.size(),
                                          " copied is not what was there; the figures are worth nothing; look for a "
                                          "fault of the device, its driver or Penstock"));
}

absl::StatusOr<CopyRig> CopyRig::Make(Runtime& runtime, int device, int64_t bytes) {
  CopyRig rig(runtime, device);
  PENSTOCK_RETURN_IF_ERROR(rig.Allocate(bytes));
  return rig;
}

absl::Status CopyRig::Allocate(int64_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(target_, runtime_->MakeState<uint8_t>("target", bytes, {}, {.device = device_}));
  PENSTOCK_ASSIGN_OR_RETURN(source_, runtime_->MakeState<uint8_t>("source", bytes, {}, {.device = device_}));
  PENSTOCK_ASSIGN_OR_RETURN(pattern_, runtime_->MakeHostBuffer<uint8_t>(bytes));
  PENSTOCK_ASSIGN_OR_RETURN(down_, runtime_->MakeHostBuffer<uint8_t>(bytes));
  plain_.resize(static_cast<size_t>(bytes));
  FillPattern(pattern_.span());
  return source_.Set(pattern_.span());
}

absl::StatusOr<double> CopyRig::Rate(Route route, int64_t bytes, const Effort& effort) {
  const bool both_modes = route == Route::kWithin || (bytes <= kSmallCopy && !IsBothWays(route));
  double best = 0;
  for (const Mode mode : {Mode::kGraph, Mode::kStream}) {
    if (mode == Mode::kStream && !both_modes) continue;
    PENSTOCK_ASSIGN_OR_RETURN(Chain chain, Chain::Lasting(*runtime_, Copies(route, bytes), effort.run_us,
                                                          MostCopies(route, bytes), Options(mode)));
    const int64_t copied = route == Route::kWithin ? bytes : bytes * chain.nodes();
    PENSTOCK_RETURN_IF_ERROR(Poison(route, copied));
    PENSTOCK_ASSIGN_OR_RETURN(const double us, Time(route, bytes, effort, chain));
    PENSTOCK_RETURN_IF_ERROR(Check(route, copied));
    best = std::max(best, GigabytesPerSecond(bytes, us));
  }
  return best;
}

absl::StatusOr<double> CopyRig::FillRate(int64_t bytes, const Effort& effort) {
  const auto fills = [this, bytes](Graph& graph, int nodes) {
    for (int i = 0; i < nodes; ++i) graph.Fill(Name("fill", i), Write(target_, Slice({0}, {bytes})), 1);
    return Chain::Bind();
  };
  PENSTOCK_ASSIGN_OR_RETURN(Chain chain,
                            Chain::Lasting(*runtime_, fills, effort.run_us, Chain::kMostNodes, Options(Mode::kGraph)));
  PENSTOCK_ASSIGN_OR_RETURN(const double us, MedianOf(effort, [&] { return chain.Time(); }));
  return GigabytesPerSecond(bytes, us / chain.nodes());
}

int CopyRig::MostCopies(Route route, int64_t bytes) const {
  if (IsStaged(route)) return 1;
  if (route == Route::kWithin) return Chain::kMostNodes;
  return static_cast<int>(std::clamp<int64_t>(pattern_.size() / bytes, 1, Chain::kMostNodes));
}

Chain::Declare CopyRig::Copies(Route route, int64_t bytes) {
  return route == Route::kWithin ? CopiesWithin(bytes) : CopiesOfHost(route, bytes);
}

// There and back, so that each copy reads what the one before has written.
Chain::Declare CopyRig::CopiesWithin(int64_t bytes) {
  return [this, part = Slice({0}, {bytes})](Graph& graph, int nodes) {
    for (int i = 0; i < nodes; ++i) {
      const State<uint8_t>&from = i % 2 == 0 ? source_ : target_, &to = i % 2 == 0 ? target_ : source_;
      graph.Copy(Name("copy", i), Read(from, part), Write(to, part));
    }
    return Chain::Bind();
  };
}

Chain::Declare CopyRig::CopiesOfHost(Route route, int64_t bytes) {
  return [this, route, bytes](Graph& graph, int nodes) -> Chain::Bind {
    const bool up = IsUpload(route);
    const int64_t all = bytes * nodes;
    const Where where = IsStaged(route) ? kHost : kPinned;
    const auto host = up ? graph.Input<uint8_t>("host", all, where) : graph.Output<uint8_t>("host", all, where);
    std::optional<NodeRef> last;
    for (int i = 0; i < nodes; ++i) {
      const Box part = Slice({i * bytes}, {bytes});
      NodeRef copy = up ? graph.Copy(Name("copy", i), Read(host, part), Write(target_, part))
                        : graph.Copy(Name("copy", i), Read(source_, part), Write(host, part));
      if (last.has_value()) copy.After(*last);
      last = copy;
    }
    return [memory = Host(route, all), host](Bindings& io) { io.Set(host, memory); };
  };
}

std::span<uint8_t> CopyRig::Host(Route route, int64_t bytes) {
  if (IsStaged(route)) return FirstBytes(plain_, bytes);
  return IsUpload(route) ? pattern_.first(bytes) : down_.first(bytes);
}

absl::StatusOr<double> CopyRig::Time(Route route, int64_t bytes, const Effort& effort, Chain& chain) {
  if (IsBothWays(route)) return TimeBesideOther(route, bytes, effort, chain);
  PENSTOCK_ASSIGN_OR_RETURN(const double us, MedianOf(effort, [&] { return chain.Time(); }));
  return us / chain.nodes();
}

absl::StatusOr<double> CopyRig::TimeBesideOther(Route route, int64_t bytes, const Effort& effort, Chain& chain) {
  CompileOptions options = Options(Mode::kGraph);
  options.slots = kRunsBeside;
  PENSTOCK_ASSIGN_OR_RETURN(Chain other,
                            Chain::Make(*runtime_, Copies(OtherWay(route), bytes), chain.nodes(), options));
  for (int i = 0; i < kRunsBeside; ++i) PENSTOCK_RETURN_IF_ERROR(other.Time().status());  // the first one of each slot
  const auto time_one = [&]() -> absl::StatusOr<double> {
    std::vector<Run> beside;
    for (int i = 0; i < kRunsBeside; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(Run run, other.Launch());
      beside.push_back(std::move(run));
    }
    absl::StatusOr<double> time = chain.Time();
    for (const Run& run : beside) PENSTOCK_RETURN_IF_ERROR(run.Wait());
    return time;
  };
  PENSTOCK_ASSIGN_OR_RETURN(const double us, MedianOf(effort, time_one));
  return us / chain.nodes();
}

absl::Status CopyRig::Poison(Route route, int64_t bytes) {
  const std::span<uint8_t> pattern = pattern_.first(bytes), host = Host(route, bytes);
  if (route == Route::kStagedUpload) std::copy(pattern.begin(), pattern.end(), host.begin());
  if (IsUpload(route) || route == Route::kWithin) return target_.Reset();
  std::fill(host.begin(), host.end(), uint8_t{0});
  return absl::OkStatus();
}

absl::Status CopyRig::Check(Route route, int64_t bytes) {
  const std::span<uint8_t> pattern = pattern_.first(bytes);
  if (!IsUpload(route) && route != Route::kWithin) return CheckCopied(Host(route, bytes), pattern);
  const std::span<uint8_t> copied = down_.first(bytes);
  PENSTOCK_RETURN_IF_ERROR(target_.Read(copied, Slice({0}, {bytes})));
  return CheckCopied(copied, pattern);
}

}  // namespace penstock::cli::measure

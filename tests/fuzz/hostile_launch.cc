#include "tests/fuzz/hostile_launch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace penstock::fuzz {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);  // far more than a run takes: past it something hangs

// The bindings of one launch, the memory they name, and what is wrong with them.
class HostileBindings {
 public:
  HostileBindings(const HostileGraph& graph, const Executable& executable, Runtime& runtime, ByteSource& bytes,
                  int hostility)
      : graph_(graph), runtime_(runtime), bytes_(bytes), hostility_(hostility), bindings_(executable.bindings()) {
    for (const ParamRecord& param : graph.params) values_.push_back(SetParam(param));
    const bool values_are_known = known_.empty();
    for (size_t b = 0; b < graph.buffers.size(); ++b) SetBuffer(b);
    if (Hostile()) SetStray();
    if (!values_are_known) return;
    for (Known& wrong : graph.WrongInRun(values_)) known_.push_back(std::move(wrong));
  }

  const Bindings& bindings() const { return bindings_; }
  const std::vector<Known>& known() const { return known_; }

 private:
  struct Bound {
    const std::byte* data = nullptr;
    size_t bytes = 0;
    bool pinned = false;
  };
  struct Freed {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  bool Hostile() { return hostility_ > 0 && bytes_.Chance(hostility_); }
  uint32_t serial() const { return graph_.graph.model().serial; }
  void Note(const std::string& subject, const std::string& text) { known_.push_back({subject, text}); }

  int64_t SetParam(const ParamRecord& param) {
    int64_t value = std::min<int64_t>(bytes_.Below(17), param.has_max ? param.max : 16);
    if (Hostile()) {
      if (bytes_.Chance(64)) {
        Note(param.name, "not set");
        return 0;
      }
      value = bytes_.Long();
    }
    const auto set = [&]<class T>(T) {
      const T given = static_cast<T>(value);
      bindings_.Set(ParamHandle<T>(serial(), param.index), given);
      return static_cast<int64_t>(given);
    };
    switch (param.type) {
      case ParamRecord::Type::kInt: value = set(int32_t{}); break;
      case ParamRecord::Type::kLong: value = set(int64_t{}); break;
      case ParamRecord::Type::kByte: value = set(uint8_t{}); break;
      case ParamRecord::Type::kFloat: bindings_.Set(ParamHandle<float>(serial(), param.index), 2.f); return 0;
    }
    if (param.has_max && (value < 0 || value > param.max)) {
      Note(param.name, std::to_string(value));
      return 0;
    }
    return value;
  }

  int64_t ElementsOf(const BufferRecord& buffer) const {
    int64_t n = 1;
    for (int i = 0; i < buffer.extent.rank; ++i) {
      const Dim& dim = buffer.extent.dims[static_cast<size_t>(i)];
      const int64_t size = dim.is_constant() ? dim.value : values_[static_cast<size_t>(dim.param)];
      if (size == 0) return 0;  // whatever the others are
      n *= size;
    }
    return n;
  }

  std::byte* Allocate(size_t bytes) {
    memory_.emplace_back(static_cast<std::byte*>(std::malloc(std::max<size_t>(bytes, 1))));
    std::fill_n(memory_.back().get(), bytes, std::byte{7});
    return memory_.back().get();
  }

  void SetBuffer(size_t index) {
    const BufferRecord& buffer = graph_.buffers[index];
    bound_.emplace_back();
    if (!IsBound(buffer.role)) return SetUnbound(buffer);
    if (IsLeased(graph_.graph.model().buffers[static_cast<size_t>(buffer.index)])) return SetLeased(buffer);
    WithElement(buffer.element, [&]<class T>(T*) { SetTyped<T>(buffer, index); });
  }

  // Handles of nothing.
  void SetStray() {
    Note("", "its handle was never set");
    if (bytes_.Chance(128)) {
      bindings_.Set(ParamHandle<int32_t>(), 1);
    } else {
      bindings_.Set(BufferHandle<float>(serial(), -7), std::span<float>());
    }
  }

  // What is no Input, Output or InOut: mostly left alone.
  void SetUnbound(const BufferRecord& buffer) {
    if (!Hostile()) return;
    Note(buffer.name, buffer.base >= 0 ? "has no memory of its own" : "cannot be bound");
    WithElement(buffer.element,
                [&]<class T>(T*) { bindings_.Set(BufferHandle<T>(buffer.graph, buffer.index), std::span<T>()); });
  }

  // What the slot has the memory of.
  void SetLeased(const BufferRecord& buffer) {
    if (!Hostile()) return;
    Note(buffer.name, "declared kSlot");
    WithElement(buffer.element,
                [&]<class T>(T*) { bindings_.Set(BufferHandle<T>(buffer.graph, buffer.index), std::span<T>()); });
  }

  // The multiple of bytes at which the memory of a buffer must begin for its aliases.
  size_t AlignmentOf(size_t index) const {
    size_t most = 1;
    for (size_t b = 0; b < graph_.buffers.size(); ++b) {
      if (graph_.RootOf(b) != index) continue;
      most = std::max(most, WithElement(graph_.buffers[b].element, []<class U>(U*) { return alignof(U); }));
    }
    return most;
  }

  template <class T>
  void SetTyped(const BufferRecord& buffer, size_t index) {
    const BufferHandle<T> handle(buffer.graph, buffer.index);
    const auto n = static_cast<size_t>(ElementsOf(buffer));
    const bool pinned = graph_.graph.model().buffers[static_cast<size_t>(buffer.index)].where == kPinned;
    const auto set = [&](const void* data, size_t count, bool is_const) {
      auto* elements = const_cast<T*>(static_cast<const T*>(data));
      if (is_const) {
        bindings_.Set(handle, std::span<const T>(elements, count));
      } else {
        bindings_.Set(handle, std::span<T>(elements, count));
      }
      bound_[index] = {static_cast<const std::byte*>(data), count * sizeof(T)};
      if (count != n) Note(buffer.name, std::to_string(count));
      if (is_const && buffer.role != BufferRole::kInput) Note(buffer.name, "const");
      const size_t align = AlignmentOf(index);
      if (reinterpret_cast<uintptr_t>(data) % align != 0) Note(buffer.name, "no multiple of " + std::to_string(align));
      NoteOverlaps(index);
    };
    const int way = Hostile() ? bytes_.Below(7) : pinned || bytes_.Chance(32) ? 8 : 7;
    switch (way) {
      case 0: Note(buffer.name, "nothing is bound"); return;
      case 1: set(Allocate((n + 1) * sizeof(T)), n + 1, false); break;
      case 2:
        set(nullptr, n, false);
        if (n > 0) Note(buffer.name, "null");
        break;
      case 3: {
        const Bound& other = bound_[static_cast<size_t>(bytes_.Below(static_cast<int>(bound_.size())))];
        const size_t skipped = bytes_.Below(2) * sizeof(T);
        const bool fits = other.data != nullptr && other.bytes >= skipped + n * sizeof(T) &&
                          reinterpret_cast<uintptr_t>(other.data) % alignof(T) == 0;
        const bool is_pinned = fits && other.pinned;
        set(fits ? other.data + skipped : Allocate(n * sizeof(T)), n, false);
        bound_[index].pinned = is_pinned;
        break;
      }
      case 4: set(Allocate(n * sizeof(T)), static_cast<size_t>(bytes_.Long()) & INT64_MAX, false); break;
      case 5: set(Allocate(n * sizeof(T)), n, true); break;
      case 6: set(Allocate(n * sizeof(T)), n / 2, false); break;
      case 7: set(Allocate(n * sizeof(T)), n, false); break;
      default: return SetPinned<T>(handle, buffer, index, static_cast<int64_t>(n));
    }
    if (pinned && n > 0 && !bound_[index].pinned) Note(buffer.name, "pinned");
  }

  template <class T>
  void SetPinned(BufferHandle<T> handle, const BufferRecord& buffer, size_t index, int64_t n) {
    absl::StatusOr<HostBuffer<T>> memory = runtime_.MakeHostBuffer<T>(n);
    if (!memory.ok()) return Note(buffer.name, "nothing is bound");
    std::fill_n(reinterpret_cast<std::byte*>(memory->data()), static_cast<size_t>(n) * sizeof(T), std::byte{9});
    bound_[index] = {reinterpret_cast<const std::byte*>(memory->data()), static_cast<size_t>(n) * sizeof(T), true};
    bindings_.Set(handle, *memory);
  }

  // No bytes overlap nothing, wherever they are.
  void NoteOverlaps(size_t index) {
    const auto begin = reinterpret_cast<uintptr_t>(bound_[index].data);
    if (bound_[index].bytes == 0) return;
    for (size_t other = 0; other < index; ++other) {
      if (bound_[other].bytes == 0) continue;
      const auto other_begin = reinterpret_cast<uintptr_t>(bound_[other].data);
      if (begin < other_begin + bound_[other].bytes && other_begin < begin + bound_[index].bytes &&
          (graph_.buffers[index].written || graph_.buffers[other].written)) {
        Note(graph_.buffers[index].name, "overlaps");
      }
    }
  }

  const HostileGraph& graph_;
  Runtime& runtime_;
  ByteSource& bytes_;
  const int hostility_;
  Bindings bindings_;
  std::vector<Known> known_;
  std::vector<int64_t> values_;  // of parameters
  std::vector<Bound> bound_;     // of buffers
  std::vector<std::unique_ptr<std::byte, Freed>> memory_;
};

struct Started {
  std::unique_ptr<HostileBindings> bindings;  // its memory
  Run run;
};

// By a lease, where the slot has memory of its own.
absl::StatusOr<Run> Launch(const HostileGraph& graph, Executable& executable, const Bindings& bindings) {
  const auto& buffers = graph.graph.model().buffers;
  if (std::none_of(buffers.begin(), buffers.end(), IsLeased)) return executable.Launch(bindings);
  const absl::Status refused = executable.Launch(bindings).status();
  if (refused.message().find("declared kSlot") == absl::string_view::npos) {
    return absl::InternalError("launched without a lease");
  }
  absl::StatusOr<Lease> lease = executable.Acquire();
  if (!lease.ok()) return lease.status();
  return lease->Launch(bindings);
}

// A callable that fails may poison a State, and so fail the runs behind.
const std::vector<Known>& CausesOfFailure() {
  static const auto& causes = *new std::vector<Known>{{"", "the callable"}, {"", "poisoned"}};
  return causes;
}

// Once no run is in flight: a State is sound, or a run that may have written it has failed.
template <class T>
std::string CheckState(State<T> state, const BufferRecord& record, bool may_be_poisoned, ByteSource& bytes) {
  size_t elements = 1;
  for (int i = 0; i < record.extent.rank; ++i)
    elements *= static_cast<size_t>(record.extent.dims[static_cast<size_t>(i)].value);
  std::vector<T> contents(elements);
  const absl::Status read = state.Read(std::span<T>(contents), kPatience);
  const bool poisoned = may_be_poisoned && read.ToString().find("poisoned") != std::string::npos;
  if (!(read.ok() || poisoned) || state.status().ok() != read.ok()) return "a State is read as: " + read.ToString();
  const absl::Status mended =
      bytes.Chance(128) ? state.Reset(kPatience) : state.Set(std::span<const T>(contents), kPatience);
  if (!mended.ok() || !state.status().ok()) return "a State is not mended: " + mended.ToString();
  contents.resize(elements + 1 + bytes.Byte());
  const absl::Status refused = state.Set(std::span<const T>(contents), kPatience);
  const std::string number =
      "given " + std::to_string(contents.size()) + " elements; the State has " + std::to_string(elements) + ";";
  if (refused.ok() || refused.ToString().find(number) == std::string::npos) return "not told: " + number;
  return "";
}

std::string CheckStates(const HostileGraph& graph, ByteSource& bytes) {
  for (const BufferRecord& record : graph.buffers) {
    if (record.state == nullptr) continue;
    const std::string problem = WithElement(record.element, [&]<class T>(T*) {
      return CheckState(*static_cast<const State<T>*>(record.state.get()), record, graph.fails && record.written,
                        bytes);
    });
    if (!problem.empty()) return problem;
  }
  return "";
}

bool WritesStates(const HostileGraph& graph) {
  return std::any_of(graph.buffers.begin(), graph.buffers.end(),
                     [](const BufferRecord& b) { return b.state != nullptr && b.written; });
}

std::string CheckEnd(const Run& run, bool fails) {
  const absl::Status status = run.Wait(kPatience);
  if (status.code() == absl::StatusCode::kDeadlineExceeded) return "a run does not end";
  if (!fails) return status.ok() ? "" : "a run failed: " + status.ToString();
  if (status.ok()) return "a run ended well although a callable failed";
  return CheckRefusal(status, CausesOfFailure(), true);
}

CompileOptions MakeOptions(ByteSource& bytes, int hostility, std::vector<Known>& known) {
  constexpr int kOdd[] = {INT_MIN, -1, 0, 1, 2, 16, 1025, INT_MAX};
  CompileOptions options;
  options.slots = 1 + bytes.Below(3);
  options.device = bytes.Below(2);
  options.max_lanes = 1 + bytes.Below(8);
  if (bytes.Chance(16)) options.trace = Trace::Create();
  if (hostility == 0 || !bytes.Chance(hostility)) return options;
  const int odd = kOdd[bytes.Below(8)];
  switch (bytes.Below(4)) {
    case 3:
      options.host_tolerance = odd < 0 ? odd : std::numeric_limits<double>::quiet_NaN();
      known.push_back({"", odd < 0 ? std::to_string(odd) : "nan"});
      break;
    case 0:
      options.slots = odd;
      if (odd < 0 || odd > 1024) known.push_back({"", std::to_string(odd)});
      break;
    case 1:
      options.device = odd;
      if (odd < 0 || odd > 1) known.push_back({"", std::to_string(odd)});
      break;
    default:
      options.max_lanes = odd;
      if (odd < 1) known.push_back({"", std::to_string(odd)});
      break;
  }
  return options;
}

}  // namespace

Runtime& TwoHostDevices() {
  static auto* const runtime = [] {
    absl::StatusOr<Runtime> made = Runtime::Create({.devices = "host:2", .workers = 2, .host_device_threads = 1});
    if (!made.ok()) std::abort();
    return new Runtime(*std::move(made));
  }();
  return *runtime;
}

std::string CheckRefusal(const absl::Status& status, const std::vector<Known>& known, bool any) {
  if (status.ok()) return known.empty() ? "" : "accepted; known was: '" + known[0].subject + "' " + known[0].text;
  const std::string text(status.message().data(), status.message().size());
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string expected = i == 0 ? "graph 'fuzzed'" : "  graph 'fuzzed'";
    if (lines[i].substr(0, expected.size()) != expected) return "a line in another form: " + lines[i];
    for (const char c : lines[i]) {
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return "a control character in: " + lines[i];
    }
  }
  constexpr std::string_view kMore = "the last mistake is made ";  // so many times more
  size_t found = 0, not_listed = 0;
  for (const std::string& line : lines) {
    const size_t at = line.find(kMore);
    if (at != std::string::npos) not_listed += std::stoul(line.substr(at + kMore.size()));
  }
  std::string missing;
  for (const Known& k : known) {
    const bool told = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      const bool named = k.subject.empty() || line.find("'" + k.subject + "'") != std::string::npos ||
                         line.find("/" + k.subject + "'") != std::string::npos;  // in a body
      return named && line.find(k.text) != std::string::npos;
    });
    found += told;
    if (!told) missing = "not told: '" + k.subject + "' " + k.text + ", in: " + text;
  }
  return (any ? found > 0 || known.empty() : found + not_listed >= known.size()) ? "" : missing;
}

std::string CheckLaunches(const HostileGraph& graph, Runtime& runtime, ByteSource& bytes) {
  constexpr int kLevels[] = {0, 8, 32};
  const int hostility = kLevels[bytes.Below(3)];
  std::vector<Known> known;
  const CompileOptions options = MakeOptions(bytes, hostility, known);
  absl::StatusOr<Executable> executable = runtime.Compile(graph.graph, options);
  if (!known.empty()) return CheckRefusal(executable.status(), known, true);
  if (!executable.ok()) return "not compiled: " + executable.status().ToString();
  std::vector<Started> started;
  std::string problem;
  for (int i = 1 + bytes.Below(3); i > 0 && problem.empty(); --i) {
    auto bindings = std::make_unique<HostileBindings>(graph, *executable, runtime, bytes, hostility);
    absl::StatusOr<Run> run = Launch(graph, *executable, bindings->bindings());
    const bool may_be_poisoned = graph.fails && WritesStates(graph) && !started.empty();
    if (!bindings->known().empty() || !run.ok()) {
      std::vector<Known> expected = bindings->known();
      if (may_be_poisoned && !run.ok()) expected.push_back({"", "poisoned"});
      problem =
          expected.empty() ? "not launched: " + run.status().ToString() : CheckRefusal(run.status(), expected, true);
      if (run.ok()) run->Wait(kPatience).IgnoreError();
      continue;
    }
    started.push_back({std::move(bindings), *std::move(run)});
  }
  for (const Started& s : started) {
    const std::string end = CheckEnd(s.run, graph.fails);
    if (problem.empty()) problem = end;
  }
  return problem.empty() ? CheckStates(graph, bytes) : problem;
}

}  // namespace penstock::fuzz

#include "tests/fuzz/check_algorithm_bytes.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/runtime.h"
#include "tests/fuzz/algorithm_declarer.h"
#include "tests/fuzz/algorithm_interpreter.h"
#include "tests/fuzz/algorithm_program.h"
#include "tests/fuzz/hostile_launch.h"

namespace penstock::fuzz {
namespace {

CompileOptions WaysToCompile(ByteSource& bytes) {
  constexpr Mode kModes[] = {Mode::kStream, Mode::kGraph, Mode::kAuto};
  CompileOptions options;
  options.slots = 1 + bytes.Below(2);
  options.device = bytes.Below(2);
  options.mode = kModes[bytes.Below(3)];
  options.fuse_maps = !bytes.Chance(64);
  options.check_against_host = bytes.Chance(32);
  options.constructs = bytes.Chance(64) ? Lowering::kHost : Lowering::kAuto;
  return options;
}

// A program, its graph, and the memory of its runs.
class FuzzedAlgorithms {
 public:
  explicit FuzzedAlgorithms(ByteSource& bytes)
      : bytes_(bytes),
        most_(kMosts[bytes.Below(4)]),
        any_length_(!bytes.Chance(96)),
        writer_(bytes, kLevels[bytes.Below(4)]),
        state_(*TwoHostDevices().MakeState<int32_t>("state", kBinCount)),
        declarer_(graph_, writer_.kept_count(), state_, most_, any_length_) {
    declarer_.Declare(graph_, writer_.program());
  }

  const Graph& graph() const { return graph_; }
  const std::vector<Known>& known() const { return writer_.known(); }
  int64_t told() const { return told_; }

  // Empty, or what a run left that it should not.
  std::string CheckRun(Executable& executable) {
    const int64_t lengths[] = {most_, bytes_.Byte() * most_ / 255, 0};
    const int64_t n = any_length_ ? lengths[bytes_.Below(3)] : most_;
    const auto param = static_cast<int32_t>(bytes_.Chance(64) ? bytes_.Long() : bytes_.Byte());
    std::vector<std::vector<int32_t>> memory = Draw(n);
    const std::vector<Cells> before = BeforeRun(memory);
    AlgorithmInterpreter interpreter(before, param);
    interpreter.Run(writer_.program());
    if (!state_.Set(memory[kState]).ok()) return "the State is not set";
    Bindings io = executable.bindings();
    io.Set(declarer_.param(), param).Set(declarer_.length(), n);
    for (size_t a = 0; a < kArrays.size(); ++a) {
      if (IsBound(a)) io.Set(declarer_.array(a), memory[a]);
    }
    const absl::StatusOr<Run> run = executable.Launch(io);
    const absl::Status ended = run.ok() ? run->Wait() : run.status();
    if (!ended.ok()) return "a run failed: " + ended.ToString();
    if (!state_.Read(std::span(memory[kState])).ok()) return "the State is not read";
    return Difference(before, interpreter, memory, run->count(declarer_.array(kKept)));
  }

 private:
  static constexpr int64_t kMosts[] = {40, 2048, 2049, 5000};
  static constexpr int kLevels[] = {0, 0, 32, 160};  // mistakes in so many of 256 steps

  static bool IsBound(size_t array) { return kArrays[array].role != BufferRole::kInternal && array != kState; }

  // Values of few kinds, of all, or side by side.
  std::vector<std::vector<int32_t>> Draw(int64_t n) {
    constexpr int kShifts[] = {0, 16, 29, 31};
    std::mt19937 random(bytes_.Byte());
    const int shift = kShifts[bytes_.Below(4)];
    std::vector<std::vector<int32_t>> memory;
    for (const ArrayDecl& array : kArrays) {
      const int64_t length = array.length == Length::kRun ? n : array.length == Length::kBins ? kBinCount : 1;
      memory.emplace_back(static_cast<size_t>(length));
      for (int32_t& value : memory.back()) value = static_cast<int32_t>(random()) >> shift;
    }
    return memory;
  }

  static std::vector<Cells> BeforeRun(const std::vector<std::vector<int32_t>>& memory) {
    std::vector<Cells> cells;
    for (size_t a = 0; a < memory.size(); ++a) {
      const bool known = kArrays[a].role != BufferRole::kInternal && a != kKept;
      cells.emplace_back();
      for (const int32_t value : memory[a]) cells.back().push_back({value, known});
    }
    return cells;
  }

  std::string Difference(const std::vector<Cells>& before, const AlgorithmInterpreter& want,
                         const std::vector<std::vector<int32_t>>& got, const absl::StatusOr<int64_t>& kept) {
    const Cell& count = want.at(writer_.kept_count());
    const auto most = static_cast<int64_t>(got[kKept].size());
    const int64_t counted = std::clamp<int64_t>(count.value, 0, most);
    if (!kept.ok()) return "no count came back: " + kept.status().ToString();
    if (*kept < 0 || *kept > most || (count.known && *kept != counted)) {
      return "a count of " + std::to_string(*kept) + " came back, not " + std::to_string(counted);
    }
    for (size_t a = 0; a < kArrays.size(); ++a) {
      if (kArrays[a].role == BufferRole::kInternal) continue;
      const int64_t end = a == kKept ? *kept : static_cast<int64_t>(got[a].size());
      for (int64_t i = 0; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        const Cell& cell = want.at(a)[at];
        told_ += cell.known && cell.value != before[a][at].value ? 1 : 0;
        if (!cell.known || cell.value == got[a][at]) continue;
        return std::string(kArrays[a].name) + "[" + std::to_string(i) + "] is " + std::to_string(got[a][at]) +
               ", not " + std::to_string(cell.value);
      }
    }
    return "";
  }

  ByteSource& bytes_;
  const int64_t most_;
  const bool any_length_;
  AlgorithmWriter writer_;
  State<int32_t> state_;
  Graph graph_{"fuzzed"};
  AlgorithmDeclarer declarer_;
  int64_t told_ = 0;  // see Outcome
};

}  // namespace

Outcome CheckAlgorithmBytes(std::span<const uint8_t> input) {
  ByteSource bytes(input);
  const CompileOptions options = WaysToCompile(bytes);
  FuzzedAlgorithms fuzzed(bytes);
  absl::StatusOr<Executable> executable = TwoHostDevices().Compile(fuzzed.graph(), options);
  Outcome outcome;
  outcome.accepted = executable.ok();
  outcome.problem = CheckRefusal(executable.status(), fuzzed.known(), false);
  if (outcome.problem.empty() && fuzzed.known().empty() && !outcome.accepted) {
    outcome.problem = "refused: " + executable.status().ToString();
  }
  outcome.ran = outcome.accepted && outcome.problem.empty();
  for (int runs = 3; outcome.ran && runs > 0 && outcome.problem.empty(); --runs) {
    outcome.problem = fuzzed.CheckRun(*executable);
  }
  outcome.told = fuzzed.told();
  return outcome;
}

}  // namespace penstock::fuzz

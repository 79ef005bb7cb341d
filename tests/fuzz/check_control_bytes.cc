#include "tests/fuzz/check_control_bytes.h"

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/trace.h"
#include "tests/conformance/graph/compiled_program.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/hostile_graph.h"
#include "tests/fuzz/hostile_launch.h"

namespace penstock::fuzz {
namespace {

using conformance::CompiledProgram;
using conformance::Handles;
using conformance::kN;
using conformance::Mix;
using conformance::Take;
using conformance::Values;

struct Never {
  PENSTOCK_HOST_DEVICE bool operator()() const { return false; }
};

// Adds mistakes to a graph that is right, and says what must be told of them.
class Mistakes {
 public:
  Mistakes(ByteSource& bytes, int of_256) : bytes_(bytes), of_256_(of_256) {}

  const std::vector<Known>& known() const { return known_; }

  void MaybeAdd(Graph& g, const Handles& b) {
    if (of_256_ == 0 || !bytes_.Chance(of_256_)) return;
    const std::string name = "wrong " + std::to_string(known_.size());
    const auto fill = [x = b[1]](Graph& body) { body.Fill("fill", x, 1); };
    switch (bytes_.Below(8)) {
      case 0: g.Repeat(name, -1 - bytes_.Below(9), fill); return Note(name, " times");
      case 1: g.While(name, When(Never{}), {.max = -1 - bytes_.Below(9)}, fill); return Note(name, "max is -");
      case 2: g.Repeat(name, other_trips_, fill); return Note(name, "a parameter of another graph");
      case 3: {
        const auto never = g.Buffer<int32_t>("never " + name, kN);
        g.ParallelFor(name, kN, Mix{1}, ReadWrite(b[1]), Read(never));
        return Note(name, "before any node has written");
      }
      case 4: {
        const auto [own, inside] = Hidden(g, name);
        g.ParallelFor(name, kN, Mix{1}, ReadWrite(b[1]), Read(own));
        return Note(name, "is declared in the body of construct");
      }
      case 5: {
        const auto [own, inside] = Hidden(g, name);
        g.ParallelFor(name, kN, Mix{1}, ReadWrite(b[1]), Read(b[2])).After(inside);
        return Note(name, "which is in another body");
      }
      case 6:
        for (int i = 0; i < 2; ++i) g.If(name, When(Never{}), fill);
        return Note(name, "names are unique among the ");
      default: g.ParallelFor(name, kN, Mix{1}, ReadWrite(b[1]), Read(far_)); return Note(name, "access");
    }
  }

 private:
  void Note(const std::string& name, const std::string& text) { known_.push_back({name, text}); }
  // A buffer and a node that only a body knows.
  static std::pair<BufferHandle<int32_t>, NodeRef> Hidden(Graph& g, const std::string& name) {
    BufferHandle<int32_t> own;
    std::optional<NodeRef> inside;
    g.If("hides " + name, When(Never{}), [&](Graph& body) {
      own = body.Buffer<int32_t>("own", kN);
      inside = body.Fill("fill", own, 1);
    });
    return {own, *inside};
  }

  ByteSource& bytes_;
  const int of_256_;
  std::vector<Known> known_;
  Graph other_{"other"};
  const ParamHandle<int32_t> other_trips_ = other_.Param<int32_t>("n", AtMost(3));
  const BufferHandle<int32_t> far_ = other_.InOut<int32_t>("far", kN);
};

CompileOptions OptionsFrom(ByteSource& bytes) {
  constexpr Mode kModes[] = {Mode::kStream, Mode::kGraph, Mode::kAuto};
  CompileOptions options;
  options.slots = 1 + bytes.Below(2);
  options.device = bytes.Below(2);
  options.mode = kModes[bytes.Below(3)];
  options.constructs = bytes.Chance(96) ? Lowering::kHost : Lowering::kAuto;
  if (bytes.Chance(32)) options.trace = Trace::Create(/*most_spans=*/100);
  return options;
}

// A run in which the Host node with this number fails, or none: what it leaves differs from what it should; or nothing.
std::string CheckRun(CompiledProgram& program, std::mt19937& random, int fails) {
  CompiledProgram::Io io;
  for (Values* const values : {&io.input, &io.now}) {
    for (int64_t i = 0; i < kN; ++i) values->push_back(static_cast<int32_t>(random()));
  }
  io.was = io.now;
  Values of_state(static_cast<size_t>(kN));
  for (int32_t& value : of_state) value = static_cast<int32_t>(random());
  if (!program.state().Set(of_state).ok()) return "the State is not set";
  program.Fail(fails);
  absl::StatusOr<Run> run = program.Launch(io);
  const absl::Status status = run.ok() ? run->Wait() : run.status();
  program.Fail(0);
  conformance::Interpreter interpreter = program.Interpret(io, of_state);
  if (fails > 0 && interpreter.Called(fails)) {
    const bool named = status.message().find("may fail " + std::to_string(fails)) != std::string::npos;
    return status.code() == absl::StatusCode::kDataLoss && named ? "" : "a failure came as: " + status.ToString();
  }
  if (!status.ok()) return "a run failed: " + status.ToString();
  Values left(static_cast<size_t>(kN));
  if (!program.state().Read(std::span(left)).ok()) return "the State is not read";
  const std::vector<Values>& memory = interpreter.memory();
  const bool right = io.got == memory[0] && io.now == memory[1] && left == of_state && io.end == memory[3];
  return right ? "" : "a run made something else than the interpreter";
}

}  // namespace

Outcome CheckControlBytes(std::span<const uint8_t> input) {
  ByteSource bytes(input);
  constexpr int kLevels[] = {0, 32, 96, 255};
  Mistakes mistakes(bytes, kLevels[bytes.Below(4)]);
  const CompileOptions compile = OptionsFrom(bytes);
  CompiledProgram program(TwoHostDevices(), {.draw =
                                                 [&](uint32_t most) {
                                                   if (most < 256) return bytes.Byte() % (most + 1);
                                                   return static_cast<uint32_t>(bytes.Long());
                                                 },
                                             .on_host = compile.constructs == Lowering::kHost,
                                             .compile = compile,
                                             .between = [&](Graph& g, const Handles& b) { mistakes.MaybeAdd(g, b); },
                                             .name = "fuzzed"});
  Outcome outcome;
  outcome.accepted = program.compiled().ok();
  outcome.problem = CheckRefusal(program.compiled(), mistakes.known(), false);
  if (outcome.problem.empty() && mistakes.known().empty() && !outcome.accepted) {
    outcome.problem = "refused: " + program.compiled().ToString();
  }
  if (!outcome.problem.empty() || !outcome.accepted) return outcome;
  outcome.ran = true;
  std::mt19937 random(bytes.Byte());
  const int fails = program.hosts() > 0 ? 1 + bytes.Byte() % program.hosts() : 0;
  for (const int which : {0, fails, 0}) {
    if (outcome.problem.empty()) outcome.problem = CheckRun(program, random, which);
  }
  return outcome;
}

}  // namespace penstock::fuzz

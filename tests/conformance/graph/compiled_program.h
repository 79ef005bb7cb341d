// A random nested program (control_programs.h) compiled as a graph, and what its runs must do.
//
// Threads: one.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/runtime.h"
#include "tests/conformance/graph/control_programs.h"

namespace penstock::conformance {

// Its buffers are an Input, an InOut, an Output that is copied to from inside, a State and an internal one.
class CompiledProgram {
 public:
  struct Options {
    Draw draw;
    bool on_host = false;  // Host nodes may wait, and nodes be pinned to devices; otherwise the device can decide all
    CompileOptions compile;
    Declarer::Between between = nullptr;
    const char* name = "program";
  };
  CompiledProgram(Runtime& runtime, Options options)
      : writer_(std::move(options.draw), 4, options.on_host), program_(writer_.Write(4, 3)) {
    state_.emplace(*runtime.MakeState<int32_t>("state", {kN}));
    Graph g(options.name);
    in_ = g.Input<int32_t>("in", kN);
    io_ = g.InOut<int32_t>("io", kN);
    out_ = g.Output<int32_t>("out", kN);
    last_ = g.Output<int32_t>("last", kN);
    Handles b{g.Buffer<int32_t>("a", kN), *io_, g.Use(*state_), g.Buffer<int32_t>("b", kN)};
    g.Copy("begin a", *in_, b[0]);
    g.ParallelFor("begin b", kN, Take{7}, Write(b[3]), Read(*in_));
    for (int r = 0; r < 5; ++r) rounds_.push_back(g.Param<int32_t>(Name("rounds", r)));
    const auto devices = static_cast<int>(runtime.devices().size());
    Declarer(rounds_, devices, fails_, std::move(options.between)).Declare(g, program_, b);
    g.Copy("end a", b[0], *out_);
    g.ParallelFor("end b", kN, Take{9}, Write(*last_), Read(b[3]));
    exec_ = runtime.Compile(g, options.compile);
  }

  // What a run is given and returns.
  struct Io {
    Values input, now, was = now, got = Values(kN, 0x5a5a5a5a), end = got;
  };
  absl::StatusOr<Run> Launch(Io& io) {
    Bindings bindings = exec_->bindings();
    bindings.Set(*in_, io.input).Set(*io_, io.now).Set(*out_, io.got).Set(*last_, io.end);
    for (int32_t i = 0; i < 5; ++i) bindings.Set(rounds_[static_cast<size_t>(i)], i);
    return exec_->Launch(bindings);
  }
  // The contents of the State become what they are after the run.
  Interpreter Interpret(const Io& io, Values& of_state) const {
    Interpreter interpreter({io.input, io.was, of_state, Values(kN)});
    for (size_t i = 0; i < kN; ++i) interpreter.memory()[3][i] = Mixed(0, io.input[i], 7);
    interpreter.Run(program_);
    of_state = interpreter.memory()[2];
    for (int32_t& v : interpreter.memory()[3]) v = Mixed(0, v, 9);
    return interpreter;
  }

  const absl::Status& compiled() const { return exec_.status(); }
  State<int32_t>& state() { return *state_; }
  int hosts() const { return writer_.hosts(); }
  void Fail(int host) { fails_ = host; }

 private:
  Writer writer_;
  const Program program_;
  std::atomic<int> fails_{0};
  std::optional<State<int32_t>> state_;
  std::optional<BufferHandle<int32_t>> in_, io_, out_, last_;
  std::vector<ParamHandle<int32_t>> rounds_;
  absl::StatusOr<Executable> exec_;
};

}  // namespace penstock::conformance

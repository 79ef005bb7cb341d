// Random nested programs of If, Switch, While and Repeat: what they are, an interpreter that runs them as C++ would,
// and how they are declared as a graph.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/graph.h"

namespace penstock::conformance {

inline constexpr int64_t kN = 40;

// The values of a buffer; arithmetic is modulo 2^32, as kernels and interpreter both do it.
using Values = std::vector<int32_t>;
PENSTOCK_HOST_DEVICE inline int32_t Mixed(int32_t to, int32_t from, int32_t by) {
  return static_cast<int32_t>(static_cast<uint32_t>(to) * 5U + static_cast<uint32_t>(from) * 3U +
                              static_cast<uint32_t>(by));
}
PENSTOCK_HOST_DEVICE inline int32_t Shown(int32_t value, int32_t by) { return (value >> 3 ^ by) & 3; }

struct Mix {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> from) const {
    to(i) = Mixed(to(i), from(i), by);
  }
};
struct Take {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> from) const {
    to(i) = Mixed(0, from(i), by);
  }
};
struct Below {
  int32_t by, limit;
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> of) const { return Shown(of(1), by) < limit; }
};
struct Which {
  int32_t by;
  PENSTOCK_HOST_DEVICE int32_t operator()(View<const int32_t> of) const { return Shown(of(1), by); }
};

// Both use what a loop tells.
struct MixCount {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int64_t> count) const {
    to(i) = Mixed(to(i), static_cast<int32_t>(count(0)), by);
  }
};
struct MixEnd {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int64_t> count,
                                       View<const uint8_t> capped) const {
    to(i) = Mixed(to(i), static_cast<int32_t>(count(0)) + 8 * capped(0), by);
  }
};
struct SayTrips {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int64_t> trips, View<const int32_t> from) const {
    trips(0) = Shown(from(1), by) - 1;
  }
};

struct Statement {
  enum Kind { kMix, kTake, kHost, kCopy, kFill, kPart, kIf, kIfElse, kSwitch, kWhile, kRepeat };
  Kind kind;
  int to, from;  // buffers
  int32_t by;
  int limit;  // of a condition or a loop
  int device;  // of a kernel
  std::vector<std::vector<Statement>> bodies;
  bool local;  // the body has a buffer of its own, which `to` becomes
  HostWay way;  // of a Host node
  int host;  // the number of a Host node that may fail, from 1; 0: it is none

  // Whether a While tells its iterations to its body, and both numbers to what comes after it; and whether the number
  // of a Repeat is in a buffer.
  bool counts() const { return by % 3 == 0; }
};
using Program = std::vector<Statement>;

// A number at random, or as a fuzzer says, from 0 to `most`.
using Draw = std::function<uint32_t(uint32_t most)>;

class Writer {
 public:
  Writer(Draw draw, int buffers, bool on_host) : draw_(std::move(draw)), buffers_(buffers), on_host_(on_host) {}

  Program Write(int statements, int depth) {
    Program program;
    for (int i = 0; i < statements; ++i) program.push_back(One(depth));
    return program;
  }

  // How many Host nodes may fail.
  int hosts() const { return hosts_; }

 private:
  int Below(int n) { return static_cast<int>(draw_(static_cast<uint32_t>(n - 1))); }

  Statement One(int depth) {
    Statement s{static_cast<Statement::Kind>(Below(depth > 0 ? 11 : 6)),
                Below(buffers_),
                Below(buffers_),
                static_cast<int32_t>(draw_(UINT32_MAX)),
                Below(5),
                Below(6),
                {},
                Below(3) == 0,
                HostWay::kWorker,
                0};
    if (!on_host_) s.way = s.by % 2 == 0 ? HostWay::kHostcallWorker : HostWay::kHostcallInline;
    if (s.kind == Statement::kHost && s.way != HostWay::kHostcallWorker) s.host = ++hosts_;
    if (!on_host_) s.device = 5;
    if (s.to == s.from) s.from = (s.from + 1) % buffers_;
    const int bodies = s.kind < Statement::kIf        ? 0
                       : s.kind == Statement::kSwitch ? Below(4)
                       : s.kind == Statement::kIfElse ? 2
                                                      : 1;
    for (int b = 0; b < bodies; ++b) s.bodies.push_back(Write(1 + Below(3), depth - 1));
    return s;
  }

  const Draw draw_;
  const int buffers_;
  const bool on_host_;  // Host nodes may wait, and nodes be pinned to devices
  int hosts_ = 0;
};

// Runs a program as C++ would.
class Interpreter {
 public:
  explicit Interpreter(std::vector<Values> memory) : memory_(std::move(memory)) {}

  void Run(const Program& program) {
    for (const Statement& s : program) One(s);
  }
  std::vector<Values>& memory() { return memory_; }
  // Whether the Host node with this number has been called.
  bool Called(int host) const { return called_.count(host) != 0; }

 private:
  void Body(const Statement& s, size_t body) {
    Values& to = To(s);
    if (!s.local) return Run(s.bodies[body]);
    const Values kept = to;  // what the body's own buffer hides
    for (size_t i = 0; i < kept.size(); ++i) to[i] = Mixed(0, From(s)[i], s.by);
    Run(s.bodies[body]);
    const Values made = to;
    to = kept;
    for (size_t i = 0; i < kept.size(); ++i) From(s)[i] = Mixed(From(s)[i], made[i], s.by);
  }

  void While(const Statement& s) {
    const auto mix = [&](int32_t with) {
      for (int32_t& value : To(s)) value = Mixed(value, with, s.by);
    };
    int count = 0;
    for (; count < 3 && shown(s) < s.limit; ++count) {
      if (s.counts()) mix(count);
      Body(s, 0);
    }
    if (s.counts()) mix(count + (shown(s) < s.limit ? 8 : 0));
  }

  void One(const Statement& s) {
    Values &to = To(s), &from = From(s);
    switch (s.kind) {
      case Statement::kMix:
      case Statement::kHost:
        called_.insert(s.kind == Statement::kHost ? s.host : 0);
        for (size_t i = 0; i < to.size(); ++i) to[i] = Mixed(to[i], from[i], s.by);
        break;
      case Statement::kTake:
        for (size_t i = 0; i < to.size(); ++i) to[i] = Mixed(0, from[i], s.by);
        break;
      case Statement::kCopy: to = from; break;
      case Statement::kFill: std::fill(to.begin(), to.end(), s.by); break;
      case Statement::kPart: std::fill(to.begin() + 1, to.begin() + 5, s.by); break;
      case Statement::kIf:
        if (shown(s) < s.limit) Body(s, 0);
        break;
      case Statement::kIfElse: Body(s, shown(s) < s.limit ? 0 : 1); break;
      case Statement::kSwitch:
        if (static_cast<size_t>(shown(s)) < s.bodies.size()) Body(s, static_cast<size_t>(shown(s)));
        break;
      case Statement::kWhile: While(s); break;
      case Statement::kRepeat:
        for (int i = s.counts() ? shown(s) - 1 : s.limit; i > 0; --i) Body(s, 0);
    }
  }

  Values& To(const Statement& s) { return memory_[static_cast<size_t>(s.to)]; }
  Values& From(const Statement& s) { return memory_[static_cast<size_t>(s.from)]; }
  int32_t shown(const Statement& s) { return Shown(From(s)[1], s.by); }

  std::vector<Values> memory_;
  std::set<int> called_;
};

using Handles = std::vector<BufferHandle<int32_t>>;

class Declarer {
 public:
  // `rounds`: parameters with the values 0, 1, 2, ... `fails`: the number of the Host node that fails when it is
  // called; 0: none does. `between`: called after each statement, where it is; null: nothing is.
  using Between = std::function<void(Graph& g, const Handles& buffers)>;
  Declarer(std::vector<ParamHandle<int32_t>> rounds, int devices, const std::atomic<int>& fails, Between between)
      : rounds_(std::move(rounds)), devices_(devices), fails_(fails), between_(std::move(between)) {}

  void Declare(Graph& g, const Program& program, Handles& b) {
    for (const Statement& s : program) {
      One(g, s, b);
      if (between_ != nullptr) between_(g, b);
    }
  }

 private:
  Name Next(const char* what) { return {what, ++names_}; }

  void Body(Graph& g, const Statement& s, size_t body, Handles& b) {
    const auto to = static_cast<size_t>(s.to), from = static_cast<size_t>(s.from);
    if (!s.local) return Declare(g, s.bodies[body], b);
    const BufferHandle<int32_t> kept = b[to];
    b[to] = g.Buffer<int32_t>(Next("own"), kN);
    g.ParallelFor(Next("first"), kN, Take{s.by}, Write(b[to]), Read(b[from]));
    Declare(g, s.bodies[body], b);
    g.ParallelFor(Next("last"), kN, Mix{s.by}, ReadWrite(b[from]), Read(b[to]));
    b[to] = kept;
  }

  void One(Graph& g, const Statement& s, Handles& b) {
    const BufferHandle<int32_t> to = b[static_cast<size_t>(s.to)], from = b[static_cast<size_t>(s.from)];
    const auto body = [&](size_t number) { return [&, number](Graph& in) { Body(in, s, number, b); }; };
    const int32_t by = s.by;
    switch (s.kind) {
      case Statement::kMix: Pin(g.ParallelFor(Next("mix"), kN, Mix{by}, ReadWrite(to), Read(from)), s); break;
      case Statement::kTake: Pin(g.ParallelFor(Next("take"), kN, Take{by}, Write(to), Read(from)), s); break;
      case Statement::kHost: Host(g, s, to, from); break;
      case Statement::kCopy: g.Copy(Next("copy"), from, to); break;
      case Statement::kFill: g.Fill(Next("fill"), to, by); break;
      case Statement::kPart: g.Fill(Next("part"), Write(to, Slice({1}, {4})), by); break;
      case Statement::kIf: g.If(Next("if"), When(Below{by, s.limit}, Read(from)), body(0)); break;
      case Statement::kIfElse: g.If(Next("if"), When(Below{by, s.limit}, Read(from)), body(0), body(1)); break;
      case Statement::kSwitch: Choose(g, s, from, body); break;
      case Statement::kWhile: Loop(g, s, from, to, body(0)); break;
      case Statement::kRepeat:
        if (s.counts()) RepeatBuffer(g, s, from, body(0));
        else if (by % 2 == 0) g.Repeat(Next("repeat"), s.limit, body(0));
        else g.Repeat(Next("repeat"), rounds_[static_cast<size_t>(s.limit)], body(0));
    }
  }

  void Host(Graph& g, const Statement& s, BufferHandle<int32_t> to, BufferHandle<int32_t> from) {
    const auto mix = [by = s.by](View<int32_t> into, View<const int32_t> of) {
      for (int64_t i = 0; i < kN; ++i) into(i) = Mixed(into(i), of(i), by);
    };
    if (s.host == 0) {
      g.Host(Next("host"), mix, ReadWrite(to), Read(from)).Infallible();
      return;
    }
    const auto mix_or_fail = [mix, number = s.host, &fails = fails_](View<int32_t> into, View<const int32_t> of) {
      if (fails.load() == number) return absl::DataLossError("it is its turn");
      mix(into, of);
      return absl::OkStatus();
    };
    NodeRef node = g.Host(Name("may fail", s.host), mix_or_fail, ReadWrite(to), Read(from));
    if (s.way == HostWay::kHostcallInline) node.Inline();
  }

  template <class B>
  void Loop(Graph& g, const Statement& s, BufferHandle<int32_t> from, BufferHandle<int32_t> to, const B& body) {
    const auto when = When(Below{s.by, s.limit}, Read(from));
    if (!s.counts()) return g.While(Next("while"), when, {.max = 3}, body);
    const auto count = g.Buffer<int64_t>(Next("count"), 1);
    const auto capped = g.Buffer<uint8_t>(Next("capped"), 1);
    g.While(Next("while"), when.Count(count).Capped(capped), {.max = 3}, [&](Graph& in) {
      in.ParallelFor(Next("index"), kN, MixCount{s.by}, ReadWrite(to), Read(count));
      body(in);
    });
    g.ParallelFor(Next("end"), kN, MixEnd{s.by}, ReadWrite(to), Read(count), Read(capped));
  }
  template <class B>
  void RepeatBuffer(Graph& g, const Statement& s, BufferHandle<int32_t> from, const B& body) {
    const auto trips = g.Buffer<int64_t>(Next("trips"), 1);
    g.ParallelFor(Next("say"), 1, SayTrips{s.by}, Write(trips), Read(from));
    g.Repeat(Next("repeat"), Read(trips), body);
  }

  template <class B>
  void Choose(Graph& g, const Statement& s, BufferHandle<int32_t> from, const B& body) {
    const auto when = When(Which{s.by}, Read(from));
    switch (s.bodies.size()) {
      case 0: return g.Switch(Next("switch"), when);
      case 1: return g.Switch(Next("switch"), when, body(0));
      case 2: return g.Switch(Next("switch"), when, body(0), body(1));
      default: return g.Switch(Next("switch"), when, body(0), body(1), body(2));
    }
  }

  void Pin(NodeRef node, const Statement& s) const {
    if (s.device < devices_) node.On(s.device);
  }

  const std::vector<ParamHandle<int32_t>> rounds_;
  const int devices_;
  const std::atomic<int>& fails_;
  const Between between_;
  int names_ = 0;
};

}  // namespace penstock::conformance

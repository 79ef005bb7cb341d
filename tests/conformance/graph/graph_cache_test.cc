// Steps that are declared anew, on every driver and in every mode: which of them find their executable, and that each
// run has the values and callables of its own step.
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::graph_cache_test {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kN = 100;

struct Scale {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* x, int32_t* y) const { y[i] = x[i] * by; }
};
struct SubtractOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { x[i] -= 1; }
};
struct AddAt {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<int32_t> x) const { x(i.y, i.x) += 1; }
};
// Its bytes behind `c` say nothing.
struct Padded {
  char c;
  int32_t i;
  PENSTOCK_HOST_DEVICE void operator()(int64_t at, int32_t* x) const { x[at] = c + i; }
};
struct PaddedHost {
  char c;
  int32_t i;
  void operator()(std::span<int32_t> v) const { v[0] += i; }
};
struct Take {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const char* from, char* to) const { to[i] = from[i]; }
};
struct BitsOf {
  float f;
  PENSTOCK_HOST_DEVICE void operator()(int64_t at, float* x) const { x[at] = f; }
};
TEST_KERNEL void Triple([[maybe_unused]] int n, [[maybe_unused]] int32_t* x) {
#if defined(__CUDA_ARCH__)
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 3;
#endif
}
TEST_KERNEL void Other([[maybe_unused]] int n, [[maybe_unused]] int32_t* x) {
#if defined(__CUDA_ARCH__)
  x[0] = n;
#endif
}
#if defined(__CUDACC__)
__global__ void AddToAll(int32_t value, int32_t* x) { x[threadIdx.x] += value; }
#endif
TEST_KERNEL void Nothing(int, int32_t*) {}
TEST_KERNEL void TakesPointer(const int32_t*, int32_t*) {}

bool Says(const absl::Status& status, const char* what) {
  return std::string(status.message().data(), status.message().size()).find(what) != std::string::npos;
}

class Cache : public GraphConformance {
 protected:
  template <class F>
  absl::Status RunStep(GraphCache& cache, F declare) {
    PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run, cache.Launch(declare));
    return run.Wait();
  }
  GraphCache Made(int limit = 8, int slots = 1) { return GraphCache(*runtime_, {limit, {.slots = slots}}); }
};

TEST_P(Cache, EachStepHasItsOwnValues) {
  GraphCache cache = Made(8, 3);
  const std::vector<int32_t> in = Random(kN);
  for (int step = 0; step < 12; ++step) {
    const auto by = static_cast<int32_t>(rng_() % 100), add = static_cast<int32_t>(rng_() % 100),
               fill = static_cast<int32_t>(rng_() % 100), param = static_cast<int32_t>(rng_() % 100);
    std::vector<int32_t> out = Poisoned(kN), filled = Poisoned(kN);
    const auto declare = [&](Graph& g, Bindings& io) {
      auto x = g.Input<int32_t>("x", kN);
      auto y = g.Output<int32_t>("y", kN), z = g.Output<int32_t>("z", kN);
      auto p = g.Param<int32_t>("p");
      g.ParallelFor("scale", kN, Scale{by}, Read(x), Write(y));
      g.ParallelFor("value", kN, AddValue{}, ReadWrite(y), add);
      g.ParallelFor("param", kN, AddValue{}, ReadWrite(y), p);
      g.Fill("fill", z, fill);
      g.Fill("part", Write(z, Slice(0, 10)), fill + 1);
      io.Set(x, in).Set(y, out).Set(z, filled).Set(p, param);
    };
    ASSERT_OK(RunStep(cache, declare));
    for (size_t i = 0; i < static_cast<size_t>(kN); ++i) {
      ASSERT_EQ(out[i], in[i] * by + add + param) << step << " " << i;
      ASSERT_EQ(filled[i], fill + (i < 10)) << step << " " << i;
    }
  }
  EXPECT_EQ(cache.counts().compiled, 1);
  EXPECT_EQ(cache.counts().found, 11);
  EXPECT_EQ(cache.counts().evicted, 0);
  EXPECT_EQ(cache.counts().calls, 13) << "a new graph is declared twice, any other once";
  EXPECT_EQ(cache.submission_report().mode, in_graphs() ? Mode::kGraph : Mode::kStream);
}

// A graph of two buffers that are filled, something in the middle, and a copy from one to the other.
struct Middle {
  Graph& g;
  BufferHandle<int32_t> x, y;
  NodeRef first, second;  // fill x and y
  ParamHandle<int32_t> p{}, q{};

  // On x, as the graph has it before any change.
  NodeRef One(const char* name = "one") { return For(name, AddOne{}, ReadWrite(x)); }
  template <class F, class... A>
  NodeRef For(const char* name, F f, A... arguments) {
    return g.ParallelFor(name, kN, f, arguments...);
  }
  NodeRef OnPart(int64_t from) { return g.ParallelFor("one", 10, AddOne{}, ReadWrite(x, Slice(from, 10))); }
  NodeRef OnPartByAlias(int64_t from) {
    return g.ParallelFor("one", 10, AddOne{}, ReadWrite(g.Alias("part", x, Slice(from, 10))));
  }
  NodeRef OfPointer(ParamHandle<int32_t> param) {
    return g.Kernel("one", TakesPointer, Threads(kN), OnDevice(param), ReadWrite(x))
        .HostFallback([](const int32_t*, int32_t*) {});
  }
  template <class K, class F>
  NodeRef OfKernel(K kernel, F on_host, KernelShape shape = Threads(kN)) {
    return g.Kernel("one", kernel, shape, int{kN}, ReadWrite(x)).HostFallback(on_host);
  }
};

TEST_P(Cache, EveryChangeOfStructureIsAnotherGraph) {
  using M = Middle;
  struct Change {
    const char* what;
    std::function<void(Graph&)> declare;
  };
  const int last = static_cast<int>(runtime_->devices().size()) - 1;
  absl::StatusOr<State<int32_t>> state = runtime_->MakeState<int32_t>("s", kN),
                                 other_state = runtime_->MakeState<int32_t>("s", kN);
  ASSERT_OK(state.status());
  ASSERT_OK(other_state.status());
  // Like the one before each, but for what the words say.
  const auto with = [](auto middle, int64_t extent = kN, int params = 0) {
    return [=](Graph& g) {
      auto x = g.Buffer<int32_t>("x", extent), y = g.Buffer<int32_t>("y", extent);
      const NodeRef first = g.Fill("x0", x, 1), second = g.Fill("y0", y, 1);
      M m{g, x, y, first, second};
      if (params > 0) m.p = g.Param<int32_t>("p", AtMost(3));
      if (params > 1) m.q = g.Param<int32_t>("q", AtMost(3));
      middle(m);
      g.Copy("copy", x, y);
    };
  };
  const auto with_p = [&](auto middle) { return with(middle, kN, 1); };
  const auto with_p_and_q = [&](auto middle) { return with(middle, kN, 2); };
  const auto base = with([](M& m) { m.One(); });
  const auto base_and = [&](auto more) {
    return [=](Graph& g) {
      base(g);
      more(g);
    };
  };
  const auto sets = [](std::span<int32_t> v) { v[0] = 1; };
  const auto on_host = [](int, int32_t*) {};
  const std::vector<Change> accesses = {
      {"as it was", base},
      {"a node's name", with([](M& m) { m.One("two"); })},
      {"a node's extent", with([](M& m) { m.g.ParallelFor("one", kN - 1, AddOne{}, ReadWrite(m.x)); })},
      {"buffers' extents", with([](M& m) { m.One(); }, kN + 1)},
      {"another functor of no state", with([](M& m) { m.For("one", SubtractOne{}, ReadWrite(m.x)); })},
      {"a functor of two dimensions", with([](M& m) {
         auto z = m.g.Buffer<int32_t>("z", {10, 10});
         m.g.Fill("z0", z, 1);
         m.g.ParallelFor("one", {10, 10}, AddAt{}, ReadWrite(z));
       })},
      {"the mode of an access", with([](M& m) { m.For("one", AddOne{}, Write(m.x)); })},
      {"the buffer of an access", with([](M& m) { m.For("one", AddOne{}, ReadWrite(m.y)); })},
      {"the box of an access", with([](M& m) { m.For("one", AddOne{}, ReadWrite(m.x, Slice(0, kN))); })},
      {"another box", with([](M& m) { m.OnPart(5); })},
      {"the same box elsewhere", with([](M& m) { m.OnPart(6); })},
      {"what nobody reads",
       with([](M& m) { m.For("one", AddOne{}, Write(m.g.Buffer<int32_t>("z", kN))).After(m.first); })},
      {"Unordered",
       with([](M& m) { m.For("one", AddOne{}, Unordered(Write(m.g.Buffer<int32_t>("z", kN)))).After(m.first); })},
  };
  const std::vector<Change> parameters = {
      {"a parameter", with_p([](M& m) { m.For("one", AddValue{}, ReadWrite(m.x), m.p); })},
      {"a value in its place", with_p([](M& m) { m.For("one", AddValue{}, ReadWrite(m.x), 1); })},
      {"it on the device", with_p([](M& m) { m.OfPointer(m.p); })},
      {"it by value", with_p([](M& m) {
         m.g.Kernel("one", Nothing, Threads(kN), m.p, ReadWrite(m.x)).HostFallback([](int32_t, int32_t*) {});
       })},
      {"another on the device", with_p_and_q([](M& m) { m.OfPointer(m.q); })},
      {"the first of two on the device", with_p_and_q([](M& m) { m.OfPointer(m.p); })},
      {"two parameters and a value", with_p_and_q([](M& m) { m.For("one", AddValue{}, ReadWrite(m.x), 1); })},
      {"the first in its place", with_p_and_q([](M& m) { m.For("one", AddValue{}, ReadWrite(m.x), m.p); })},
      {"the second", with_p_and_q([](M& m) { m.For("one", AddValue{}, ReadWrite(m.x), m.q); })},
  };
  const std::vector<Change> said = {
      {"After", with([](M& m) { m.One().After(m.second); })},
      {"After another", with([](M& m) { m.One().After(m.first); })},
      {"After both", with([](M& m) { m.One().After(m.second).After(m.first); })},
      {"Priority", with([](M& m) { m.One().Priority(-1); })},
      {"another Priority", with([](M& m) { m.One().Priority(1); })},
      {"Priority, of another node", with([](M& m) { m.One("four").Priority(1); })},
      {"no more Priority", with([](M& m) { m.One("four"); })},
      {"Concurrency", with([](M& m) { m.One().Concurrency(2); })},
      {"After, of another node", with([](M& m) { m.One("three").After(m.second); })},
      {"no more After", with([](M& m) { m.One("three"); })},
      {"Infallible", with([=](M& m) { m.g.Host("asked", sets, ReadWrite(m.x)).Infallible(); })},
      {"Inline", with([=](M& m) { m.g.Host("asked", sets, ReadWrite(m.x)).Inline(); })},
      {"neither", with([=](M& m) { m.g.Host("asked", sets, ReadWrite(m.x)); })},
      {"On", with([=](M& m) { m.One().On(last); })},
      {"Nondeterministic", with([](M& m) { m.One().Nondeterministic(); })},
      {"InPlace", with([](M& m) { m.For("one", Scale{1}, Read(m.x), Write(m.y)).InPlace(m.x, m.y); })},
      {"no InPlace", with([](M& m) { m.For("one", Scale{1}, Read(m.x), Write(m.y)); })},
  };
  const std::vector<Change> kinds = {
      {"a host node", with([](M& m) { m.g.Host("one", [](std::span<int32_t> v) { v[0] = 1; }, ReadWrite(m.x)); })},
      {"another host node",
       with([](M& m) { m.g.Host("one", [](std::span<int32_t> v) { v[0] = 2; }, ReadWrite(m.x)); })},
      {"a kernel", with([=](M& m) { m.OfKernel(Triple, on_host); })},
      {"a kernel's shape", with([=](M& m) { m.OfKernel(Triple, on_host, Threads(kN, 128)); })},
      {"a kernel's size of blocks by occupancy",
       with([=](M& m) { m.OfKernel(Triple, on_host, Threads(kN, kOccupancy)); })},
      {"a kernel's host fallback", with([](M& m) { m.OfKernel(Triple, [](int, int32_t* v) { v[0] = 1; }); })},
      {"another kernel", with([=](M& m) { m.OfKernel(Other, on_host); })},
      {"a State", with([&](M& m) { m.For("one", AddOne{}, ReadWrite(*state)); })},
      {"another State like it", with([&](M& m) { m.For("one", AddOne{}, ReadWrite(*other_state)); })},
      {"a part of it by an alias", with([](M& m) { m.OnPartByAlias(5); })},
      {"another part", with([](M& m) { m.OnPartByAlias(6); })},
  };
  const std::vector<Change> numbers = {
      {"two buffers more", base_and([](Graph& g) {
         g.Buffer<int32_t>("z", kN);
         g.Buffer<int32_t>("w", kN);
       })},
      {"a buffer more", base_and([](Graph& g) { g.Buffer<int32_t>("z", kN); })},
      {"the type of that", base_and([](Graph& g) { g.Buffer<float>("z", kN); })},
      {"its pitch", base_and([](Graph& g) { g.Buffer<float>("z", Pitched({10, 10}, 16)); })},
      {"another pitch", base_and([](Graph& g) { g.Buffer<float>("z", Pitched({10, 10}, 32)); })},
      {"where it is", base_and([](Graph& g) { g.Buffer<int32_t>("z", kN, kPinned); })},
      {"two parameters more", base_and([](Graph& g) {
         g.Param<int32_t>("p", AtMost(3));
         g.Param<int32_t>("q", AtMost(3));
       })},
      {"a parameter more", base_and([](Graph& g) { g.Param<int32_t>("p", AtMost(3)); })},
      {"a promise of determinism", base_and([](Graph& g) { g.Deterministic(); })},
      {"its maximum", base_and([](Graph& g) { g.Param<int32_t>("p", AtMost(4)); })},
      {"its type", base_and([](Graph& g) { g.Param<int64_t>("p", AtMost(4)); })},
      {"a node more", base_and([](Graph& g) { g.Fill("more", g.Buffer<int32_t>("z", kN), 1); })},
      {"a node less",
       [](Graph& g) {
         auto x = g.Buffer<int32_t>("x", kN), y = g.Buffer<int32_t>("y", kN);
         g.Fill("x0", x, 1);
         g.Fill("y0", y, 1);
         g.ParallelFor("one", kN, AddOne{}, ReadWrite(x));
       }},
      {"nodes in another order",
       [](Graph& g) {
         auto x = g.Buffer<int32_t>("x", kN), y = g.Buffer<int32_t>("y", kN);
         g.Fill("y0", y, 1);
         g.Fill("x0", x, 1);
         g.ParallelFor("one", kN, AddOne{}, ReadWrite(x));
         g.Copy("copy", x, y);
       }},
      {"a copy the other way",
       [](Graph& g) {
         auto x = g.Buffer<int32_t>("x", kN), y = g.Buffer<int32_t>("y", kN);
         g.Fill("x0", x, 1);
         g.Fill("y0", y, 1);
         g.ParallelFor("one", kN, AddOne{}, ReadWrite(x));
         g.Copy("copy", y, x);
       }},
  };
  std::vector<Change> changes;
  for (const auto* some : {&accesses, &parameters, &said, &kinds, &numbers}) {
    changes.insert(changes.end(), some->begin(), some->end());
  }
  GraphCache cache(*runtime_, {static_cast<int>(changes.size()), {.slots = 1}});
  for (int round = 0; round < 2; ++round) {
    for (const Change& change : changes) {
      const GraphCacheCounts before = cache.counts();
      const auto declare = [&](Graph& g, Bindings& io) {
        change.declare(g);
        for (int32_t p = 0; p < static_cast<int32_t>(g.model().params.size()); ++p) {
          const Model& model = g.model();
          const bool wide = model.params[static_cast<size_t>(p)].type == detail::TypeOf<int64_t>();
          if (wide) io.Set(ParamHandle<int64_t>(model.serial, p), 1);
          else io.Set(ParamHandle<int32_t>(model.serial, p), 1);
        }
      };
      absl::StatusOr<penstock::Run> run = cache.Launch(declare);
      ASSERT_OK(run.status()) << change.what;
      (void)run->Wait();  // on a GPU what a host node's neighbour does is of no matter here
      EXPECT_EQ(cache.counts().compiled - before.compiled, round == 0) << change.what;
      EXPECT_EQ(cache.counts().found - before.found, round) << change.what;
    }
  }
  EXPECT_EQ(cache.counts().evicted, 0);
}

TEST_P(Cache, WhatABufferIsBoundForIsStructureToo) {
  GraphCache cache = Made();
  std::vector<int32_t> in(kN, 1), out(kN);
  const auto declare = [&](bool input) {
    return [&, input](Graph& g, Bindings& io) {
      auto x = input ? g.Input<int32_t>("x", kN) : g.InOut<int32_t>("x", kN);
      auto y = g.Output<int32_t>("y", kN);
      g.Copy("copy", x, y);
      io.Set(x, in).Set(y, out);
    };
  };
  EXPECT_OK(RunStep(cache, declare(true)));
  EXPECT_OK(RunStep(cache, declare(false)));
  EXPECT_EQ(cache.counts().compiled, 2);
}

// The last that is said about a node counts, whenever that is.
TEST_P(Cache, WhatIsSaidAboutANodeMayChangeAndComeLater) {
  GraphCache cache = Made();
  const auto declare = [](int first, int last) {
    return [=](Graph& g) {
      auto x = g.Buffer<int32_t>("x", kN);
      NodeRef a = g.Fill("a", x, 1).Priority(first);
      NodeRef b = g.ParallelFor("b", kN, AddOne{}, ReadWrite(x));
      a.Priority(last);
      b.After(a).Concurrency(2).Concurrency(1);
    };
  };
  EXPECT_OK(RunStep(cache, declare(0, 1)));
  EXPECT_OK(RunStep(cache, declare(7, 1)));
  EXPECT_OK(RunStep(cache, declare(1, 1)));
  EXPECT_EQ(cache.counts().compiled, 1);
  EXPECT_OK(RunStep(cache, declare(1, 0)));
  EXPECT_EQ(cache.counts().compiled, 2);
  EXPECT_OK(RunStep(cache, declare(3, 0)));
  EXPECT_EQ(cache.counts().compiled, 2);
}

TEST_P(Cache, StepsThatAlternateAreFoundAtOnce) {
  GraphCache cache = Made();
  std::vector<int32_t> out(3);
  const auto declare = [&](int64_t kind, int32_t value) {
    return [&, kind, value](Graph& g, Bindings& io) {
      auto y = g.Output<int32_t>("y", kind);
      g.Fill("fill", y, value);
      io.Set(y, std::span(out.data(), static_cast<size_t>(kind)));
    };
  };
  for (int step = 0; step < 12; ++step) {
    const int64_t calls = cache.counts().calls;
    ASSERT_OK(RunStep(cache, declare(1 + step % 3, step)));
    ASSERT_EQ(out[static_cast<size_t>(step % 3)], step);
    ASSERT_EQ(cache.counts().calls - calls, step >= 4 ? 1 : cache.counts().calls - calls)
        << "what comes next is known, step " << step;
  }
  EXPECT_EQ(cache.counts().compiled, 3);
  EXPECT_EQ(cache.counts().found, 9);
}

// Names are compared by what they say.
TEST_P(Cache, NamesMayBeMadeAnew) {
  GraphCache cache = Made();
  for (int step = 0; step < 3; ++step) {
    ASSERT_OK(RunStep(cache, [&](Graph& g) {
      auto x = g.Buffer<int32_t>(std::string("a buffer with a long name, number ") + "1", kN);
      g.Fill(std::string("a node with a long name, number ") + std::to_string(7), x, step);
    }));
  }
  EXPECT_EQ(cache.counts().compiled, 1);
}

// Names in a scope are compared in the same way, and each step begins without a scope.
TEST_P(Cache, NamesInAScopeArePartsOfTheStructure) {
  GraphCache cache = Made();
  const auto declare = [](int step, int tile) {
    return [=](Graph& g) {
      const auto scope = g.Scope(Name("step", step));
      g.Fill(Name("tile", tile), g.Buffer<int32_t>("x", kN), 1);
    };
  };
  EXPECT_OK(RunStep(cache, declare(1, 1)));
  EXPECT_OK(RunStep(cache, declare(1, 1)));
  EXPECT_EQ(cache.counts().compiled, 1);
  EXPECT_OK(RunStep(cache, declare(1, 2)));
  EXPECT_OK(RunStep(cache, declare(2, 1)));
  EXPECT_OK(RunStep(cache, declare(2, 1)));
  EXPECT_EQ(cache.counts().compiled, 3);
}

// In a declaration Has tells of the step alone, though values of earlier steps stay set.
TEST_P(Cache, HasTellsWhatTheStepHasSet) {
  GraphCache cache = Made();
  std::vector<int32_t> in(kN), out(kN);
  std::vector<bool> had;
  for (int step = 0; step < 2; ++step) {
    ASSERT_OK(RunStep(cache, [&](Graph& g, Bindings& io) {
      const auto n = g.Param<int32_t>("n");
      const auto x = g.Input<int32_t>("x", kN), y = g.Output<int32_t>("y", kN);
      g.Copy("copy", x, y);
      had.insert(had.end(), {io.Has(n), io.Has(x)});
      io.Set(n, 1).Set(x, in);
      had.insert(had.end(), {io.Has(n), io.Has(x)});
      io.ClearBuffers();
      had.insert(had.end(), {io.Has(n), io.Has(x)});
      io.Set(x, in).Set(y, out);
    }));
  }
  const std::vector<bool> of_step = {false, false, true, true, true, false};
  EXPECT_EQ(std::vector<bool>(had.begin(), had.begin() + 6), of_step);
  EXPECT_EQ(std::vector<bool>(had.end() - 6, had.end()), of_step);
}

TEST_P(Cache, TheLeastRecentlyUsedIdleOneMakesRoom) {
  GraphCache cache = Made(2);
  const auto declare = [](int64_t n) { return [=](Graph& g) { g.Fill("fill", g.Buffer<int32_t>("x", n), 1); }; };
  const auto compiled = [&](int64_t n) {
    const int64_t before = cache.counts().compiled;
    EXPECT_OK(RunStep(cache, declare(n)));
    return cache.counts().compiled - before;
  };
  EXPECT_EQ(compiled(1), 1);
  EXPECT_EQ(compiled(2), 1);
  EXPECT_EQ(compiled(1), 0);
  EXPECT_EQ(compiled(3), 1) << "in the place of 2";
  EXPECT_EQ(cache.counts().evicted, 1);
  EXPECT_EQ(compiled(1), 0);
  EXPECT_EQ(compiled(3), 0);
  EXPECT_EQ(compiled(2), 1) << "in the place of 1";
  EXPECT_EQ(compiled(3), 0);
  EXPECT_EQ(compiled(1), 1);
}

// Host nodes that wait until the test lets them go.
struct Held {
  std::promise<void> go;
  std::shared_future<void> going = go.get_future().share();
  auto Declare(const char* name) const {
    return
        [name, going = going](Graph& g) { g.Host(name, [going] { (void)going.wait_for(std::chrono::seconds(20)); }); };
  }
};

TEST_P(Cache, WhatHasARunIsNotEvicted) {
  GraphCache cache = Made(2);
  Held held;
  absl::StatusOr<penstock::Run> first = cache.Launch(held.Declare("first"));
  ASSERT_OK(first.status());
  ASSERT_OK(RunStep(cache, [](Graph& g) { g.Host("idle", [] {}); }));
  ASSERT_OK(RunStep(cache, [](Graph& g) { g.Host("in its place", [] {}); }));
  EXPECT_EQ(cache.counts().evicted, 1);
  absl::StatusOr<penstock::Run> second = cache.Launch(held.Declare("second"));
  ASSERT_OK(second.status());
  EXPECT_EQ(cache.counts().evicted, 2);

  const absl::Status full = cache.Launch([](Graph& g) { g.Host("third", [] {}); }, milliseconds(20)).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kDeadlineExceeded) << full;
  EXPECT_TRUE(Says(full, "all 2 executables had runs in flight")) << full;
  EXPECT_EQ(cache.counts().compiled, 4) << "nothing was";
  held.go.set_value();
  EXPECT_OK(RunStep(cache, [](Graph& g) { g.Host("third", [] {}); })) << "waits until one is idle";
  EXPECT_OK(first->Wait());
  EXPECT_OK(second->Wait());
}

TEST_P(Cache, ALaunchWaitsForASlotOfItsOwnGraphOnly) {
  GraphCache cache = Made(8, 1);
  Held held;
  absl::StatusOr<penstock::Run> run = cache.Launch(held.Declare("held"));
  ASSERT_OK(run.status());
  ASSERT_OK(RunStep(cache, [](Graph& g) { g.Host("other", [] {}); })) << "though the other would be tried first";
  const absl::Status busy = cache.Launch(held.Declare("held"), milliseconds(20)).status();
  EXPECT_EQ(busy.code(), absl::StatusCode::kDeadlineExceeded) << busy;
  EXPECT_TRUE(Says(busy, "all 1 slots are taken")) << busy;
  held.go.set_value();
  EXPECT_OK(RunStep(cache, held.Declare("held")));
  EXPECT_OK(run->Wait());
  EXPECT_EQ(cache.counts().compiled, 2);
}

TEST_P(Cache, EachRunHasTheCallablesOfItsStep) {
  GraphCache cache = Made(8, 3);
  Held held;
  std::vector<std::vector<int32_t>> outs(9, std::vector<int32_t>(1));
  std::vector<penstock::Run> runs;
  std::vector<std::weak_ptr<int32_t>> captured;
  for (size_t step = 0; step < outs.size(); ++step) {
    if (step == 3) held.go.set_value();
    const auto value = std::make_shared<int32_t>(static_cast<int32_t>(step) + 100);
    captured.push_back(value);
    absl::StatusOr<penstock::Run> run = cache.Launch([&](Graph& g, Bindings& io) {
      auto y = g.Output<int32_t>("y", 1);
      g.Host("hold", [going = held.going] { (void)going.wait_for(std::chrono::seconds(20)); }).Concurrency(3);
      g.Host(
           "write", [value](std::span<int32_t> v, int32_t more) { v[0] = *value + more; }, Write(y),
           static_cast<int32_t>(1000 * step))
          .After(g.Host("between", [] {}));
      io.Set(y, outs[step]);
    });
    ASSERT_OK(run.status());
    runs.push_back(*run);
  }
  for (size_t step = 0; step < outs.size(); ++step) {
    EXPECT_OK(runs[step].Wait());
    EXPECT_EQ(outs[step][0], static_cast<int32_t>(1001 * step + 100));
  }
  EXPECT_EQ(cache.counts().compiled, 1);
  int alive = 0;
  for (const auto& value : captured) alive += !value.expired();
  EXPECT_EQ(alive, 3) << "one a slot";
}

TEST_P(Cache, TwinsAndKernelsHaveTheValuesOfTheirStep) {
  GraphCache cache = Made(8, 2);
  for (int32_t step = 0; step < 6; ++step) {
    std::vector<int32_t> out(kN, 1);
    ASSERT_OK(RunStep(cache, [&](Graph& g, Bindings& io) {
      auto x = g.InOut<int32_t>("x", kN);
      g.Kernel("triple", Triple, Threads(kN), static_cast<int>(10 + step), ReadWrite(x))
          .HostFallback([](int n, int32_t* v) {
            for (int i = 0; i < n; ++i) v[i] *= 3;
          });
      g.Kernel("on hosts", Nothing, Threads(1), 1, ReadWrite(x)).HostFallback([step](int, int32_t* v) {
        v[kN - 1] = step;
      });
      io.Set(x, out);
    }));
    for (int32_t i = 0; i < kN - 1; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], i < 10 + step ? 3 : 1);
    ASSERT_EQ(out[kN - 1], on_cuda() ? 1 : step);
  }
  EXPECT_EQ(cache.counts().compiled, 1);
}

TEST_P(Cache, ALaunchNodeIsCapturedAnewWhereItHasOtherValues) {
  GraphCache cache = Made();
  const auto captures_after = [&](int32_t value) {
    std::vector<int32_t> out(kN, 1);
    const auto theirs = [value]([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] int32_t* x) {
#if defined(__CUDACC__)
      AddToAll<<<1, kN, 0, CudaStream(launch)>>>(value, x);
      return ToStatus(cudaGetLastError());
#else
      return absl::InternalError("called on a host device, to add " + std::to_string(value));
#endif
    };
    EXPECT_OK(RunStep(cache, [&](Graph& g, Bindings& io) {
      auto x = g.InOut<int32_t>("x", kN);
      auto call = theirs;
      g.Launch("theirs", std::move(call), ReadWrite(x)).HostFallback([value](int32_t* v) {
        for (int64_t i = 0; i < kN; ++i) v[i] += value;
      });
      io.Set(x, out);
    }));
    EXPECT_EQ(out, std::vector<int32_t>(kN, 1 + value));
    return cache.submission_report().captures;
  };
  const int64_t first = captures_after(5), another = in_graphs() ? 1 : 0;
  EXPECT_EQ(captures_after(5), first);
  EXPECT_EQ(captures_after(6), first + another);
  EXPECT_EQ(captures_after(6), first + another);
  EXPECT_EQ(captures_after(5), first + 2 * another);
  EXPECT_EQ(cache.counts().compiled, 1);
  EXPECT_EQ(cache.counts().nodes_changed, 3) << "the first, and two others";
}

TEST_P(Cache, PaddingIsNoChange) {
#if !__has_builtin(__builtin_clear_padding)
  GTEST_SKIP() << "this compiler does not tell what is padding; a value that seems to be another is set, no more";
#endif
  GraphCache cache = Made();
  std::vector<int32_t> out(kN);
  for (int step = 0; step < 4; ++step) {
    Padded padded;
    PaddedHost host;
    std::memset(static_cast<void*>(&padded), step, sizeof(padded));
    std::memset(static_cast<void*>(&host), step, sizeof(host));
    padded.c = host.c = 3;
    padded.i = host.i = 4;
    const int64_t before = cache.counts().nodes_changed;
    ASSERT_OK(RunStep(cache, [&](Graph& g, Bindings& io) {
      auto x = g.Output<int32_t>("x", kN);
      g.ParallelFor("padded", kN, padded, Write(x));
      g.Host("host", host, ReadWrite(x));
      io.Set(x, out);
    }));
    EXPECT_EQ(out[0], 11);
    EXPECT_LE(cache.counts().nodes_changed - before, step == 0 ? 2 : 0) << step;
  }
}

TEST_P(Cache, FloatsAreComparedByTheirBits) {
  GraphCache cache = Made();
  const float values[] = {0.f, -0.f, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
                          0.f};
  for (const float value : values) {
    std::vector<float> out(2 * kN, 1);
    ASSERT_OK(RunStep(cache, [&](Graph& g, Bindings& io) {
      auto x = g.Output<float>("x", 2 * kN);
      g.ParallelFor("bits", kN, BitsOf{value}, Write(x, Slice(0, kN)));
      g.Fill("fill", Write(x, Slice(kN, kN)), value);
      io.Set(x, out);
    }));
    EXPECT_EQ(std::memcmp(&out[0], &value, sizeof(value)), 0) << value;
    EXPECT_EQ(std::memcmp(&out[kN], &value, sizeof(value)), 0) << value;
  }
  EXPECT_EQ(cache.counts().compiled, 1);
}

TEST_P(Cache, WhatIsNotSetStaysAndWhatAnotherGraphsStepSetsIsNotMixedIn) {
  GraphCache cache = Made();
  std::vector<int32_t> a(kN), b(kN), c(kN);
  const auto declare = [](std::vector<int32_t>* memory, const char* last, int32_t value) {
    return [=](Graph& g, Bindings& io) {
      auto x = g.Output<int32_t>("x", kN);
      if (memory != nullptr) io.Set(x, *memory);  // before it is known which graph this is
      g.Fill("first", x, value);
      g.ParallelFor(last, kN, AddOne{}, ReadWrite(x));
    };
  };
  ASSERT_OK(RunStep(cache, declare(&a, "one", 1)));
  ASSERT_OK(RunStep(cache, declare(&b, "two", 10)));
  ASSERT_OK(RunStep(cache, declare(&c, "two", 20)));
  ASSERT_OK(RunStep(cache, declare(nullptr, "one", 2)));
  EXPECT_EQ(a[0], 3);
  ASSERT_OK(RunStep(cache, declare(nullptr, "two", 30)));
  EXPECT_EQ(c[0], 31);
  EXPECT_EQ(b[0], 11);
  EXPECT_EQ(RunStep(cache, declare(nullptr, "three", 1)).code(), absl::StatusCode::kFailedPrecondition)
      << "nothing has been bound";
  const absl::Status launch = RunStep(cache, [&](Graph& g, Bindings& io) {
    declare(&a, "one", 3)(g, io);
    io.Set(Graph("other").Output<int32_t>("x", kN), b);
  });
  EXPECT_EQ(launch.code(), absl::StatusCode::kInvalidArgument) << launch;
  ASSERT_OK(RunStep(cache, declare(nullptr, "one", 4))) << "a step's mistakes are its own";
  EXPECT_EQ(a[0], 5);
}

// Values that were set for a graph the step turned out not to be are caught up with by that graph's next step.
TEST_P(Cache, AComparisonThatFailsDoesNoHarm) {
  GraphCache cache = Made();
  std::vector<int32_t> out(kN);
  const auto declare = [&](int32_t value, bool more) {
    return [&, value, more](Graph& g, Bindings& io) {
      auto x = g.Output<int32_t>("x", kN);
      g.Fill("fill", x, value);
      g.ParallelFor("add", kN, AddValue{}, ReadWrite(x), value);
      g.Host("host", [value](std::span<int32_t> v) { v[0] += value; }, ReadWrite(x));
      if (more) g.ParallelFor("more", kN, AddOne{}, ReadWrite(x));
      io.Set(x, out);
    };
  };
  const std::pair<bool, int32_t> steps[] = {{false, 7}, {true, 5},  {false, 5}, {false, 7}, {true, 7},
                                            {true, 5},  {false, 5}, {true, 9},  {false, 9}};
  for (const auto& [more, value] : steps) {
    ASSERT_OK(RunStep(cache, declare(value, more)));
    EXPECT_EQ(out[0], 3 * value + more);
    EXPECT_EQ(out[1], 2 * value + more);
  }
  EXPECT_EQ(cache.counts().compiled, 2);
}

TEST_P(Cache, MistakesComeBackAndTheCacheGoesOn) {
  GraphCache cache = Made();
  const auto right = [](Graph& g) { g.Fill("fill", g.Buffer<int32_t>("x", kN), 1); };
  ASSERT_OK(RunStep(cache, right));
  const absl::Status wrong = RunStep(cache, [](Graph& g) {
    g.Buffer<int32_t>("x", -1);
    g.ParallelFor("", kN, AddOne{}, ReadWrite(BufferHandle<int32_t>()));
  });
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Says(wrong, "graph 'step'")) << wrong;
  const absl::Status threw = RunStep(cache, [&](Graph& g) {
    right(g);
    throw std::runtime_error("no batch");
  });
  EXPECT_EQ(threw.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Says(threw, "the function that declares threw: no batch")) << threw;
  EXPECT_EQ(RunStep(cache, [](Graph&) { throw 1; }).code(), absl::StatusCode::kInternal);
  const absl::Status returned =
      RunStep(cache, [](Graph&, Bindings&) -> absl::Status { return absl::NotFoundError("no more"); });
  EXPECT_EQ(returned, absl::NotFoundError("no more"));
  const absl::Status leased = RunStep(cache, [](Graph& g) { g.Fill("fill", g.Output<int32_t>("slot", kN, kSlot), 1); });
  EXPECT_EQ(leased.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Says(leased, "buffer 'slot'") && Says(leased, "declared kSlot")) << leased;
  int call = 0;
  const absl::Status another =
      RunStep(cache, [&](Graph& g) { g.Fill("fill " + std::to_string(call++), g.Buffer<int32_t>("x", kN), 1); });
  EXPECT_EQ(another.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Says(another, "did not declare the same when it was called again")) << another;
  EXPECT_EQ(GraphCache(*runtime_, {.limit = 0}).Launch(right).status().code(), absl::StatusCode::kInvalidArgument);
  GraphCache moved = std::move(cache);
  EXPECT_EQ(cache.Launch(right).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(RunStep(moved, right));
  EXPECT_EQ(moved.counts().compiled, 2) << "the right one and the first of those that differ";
  EXPECT_EQ(moved.counts().found, 1);
}

TEST_P(Cache, HandlesOfAnEarlierStepAreGoodForItsGraphOnly) {
  GraphCache cache = Made();
  std::vector<int32_t> out(kN);
  BufferHandle<int32_t> kept;
  const auto declare = [&](int64_t n, bool keep) {
    return [&, n, keep](Graph& g, Bindings& io) {
      auto x = g.Output<int32_t>("x", n);
      if (keep) kept = x;
      g.Fill("fill", keep ? x : kept, static_cast<int32_t>(n));
      io.Set(keep ? x : kept, std::span(out.data(), static_cast<size_t>(n)));
    };
  };
  ASSERT_OK(RunStep(cache, declare(kN, true)));
  ASSERT_OK(RunStep(cache, declare(kN, false)));
  EXPECT_EQ(cache.counts().compiled, 1);
  const absl::Status other = RunStep(cache, declare(kN - 1, false));
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument) << other;
  // Nor where the graphs have the same buffers and parameters.
  ParamHandle<int32_t> kept_param;
  const auto adds = [&](const char* name, bool own_buffer, bool own_param) {
    return [&, name, own_buffer, own_param](Graph& g, Bindings& io) {
      auto x = g.InOut<int32_t>("x", kN);
      auto p = g.Param<int32_t>("p", AtMost(3));
      if (own_buffer && own_param && name[0] == 'a') kept = x, kept_param = p;
      g.ParallelFor(name, kN, AddValue{}, ReadWrite(own_buffer ? x : kept), own_param ? p : kept_param);
      io.Set(x, out).Set(p, 1);
    };
  };
  ASSERT_OK(RunStep(cache, adds("a", true, true)));
  ASSERT_OK(RunStep(cache, adds("b", true, true)));
  EXPECT_EQ(RunStep(cache, adds("b", false, true)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunStep(cache, adds("b", true, false)).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_OK(RunStep(cache, adds("a", false, false)));
}

TEST_P(Cache, LaunchesInsideCallablesAndDeclarationsAreRefused) {
  GraphCache cache = Made();
  const auto right = [](Graph& g) { g.Fill("fill", g.Buffer<int32_t>("x", kN), 1); };
  absl::Status inside_node, inside_declaration;
  ASSERT_OK(RunStep(cache, [&](Graph& g) {
    g.Host("host", [&] { inside_node = cache.Launch(right).status(); });
    inside_declaration = cache.Launch(right).status();
  }));
  EXPECT_EQ(inside_node.code(), absl::StatusCode::kFailedPrecondition) << inside_node;
  EXPECT_EQ(inside_declaration.code(), absl::StatusCode::kFailedPrecondition) << inside_declaration;
}

TEST_P(Cache, RunsOutliveTheCacheAndTheCacheTheRuntime) {
  std::vector<int32_t> out(1);
  auto cache = std::make_unique<GraphCache>(*runtime_, GraphCacheOptions{.compile = {.slots = 1}});
  Held held;
  const auto declare = [&](Graph& g, Bindings& io) {
    auto y = g.Output<int32_t>("y", 1);
    auto value = std::make_shared<int32_t>(5);
    g.Host(
        "write",
        [value, going = held.going](std::span<int32_t> v) {
          (void)going.wait_for(std::chrono::seconds(20));
          v[0] = *value;
        },
        Write(y));
    io.Set(y, out);
  };
  absl::StatusOr<penstock::Run> run = cache->Launch(declare);
  ASSERT_OK(run.status());
  cache.reset();
  held.go.set_value();
  EXPECT_OK(run->Wait());
  EXPECT_EQ(out[0], 5);
  GraphCache other = Made();
  ASSERT_OK(RunStep(other, declare));
  *run = penstock::Run();
  ASSERT_OK(runtime_->Shutdown());
  EXPECT_EQ(other.Launch(declare).status().code(), absl::StatusCode::kFailedPrecondition);
}

// What a check keeps of its node could not change, so each step is checked by an executable of its own.
TEST_P(Cache, TwinsAreCheckedInEveryStep) {
  GraphCache cache(*runtime_, {2, {.slots = 1, .check_against_host = true}});
  for (int32_t step = 0; step < 4; ++step) {
    std::vector<int32_t> out(kN, 1);
    ASSERT_OK(RunStep(cache, [&](Graph& g, Bindings& io) {
      auto x = g.InOut<int32_t>("x", kN);
      g.ParallelFor("add", kN, AddValue{}, ReadWrite(x), step);
      io.Set(x, out);
    }));
    EXPECT_EQ(out[0], 1 + step);
  }
  EXPECT_EQ(cache.counts().compiled, 4);
  EXPECT_EQ(cache.counts().evicted, 2);
}

TEST(CacheMemory, IdleExecutablesMakeRoomWhereMemoryIsShort) {
  absl::StatusOr<Runtime> runtime =
      Runtime::Create({.devices = "host", .workers = 1, .host_device_memory = int64_t{1} << 20});
  ASSERT_OK(runtime.status());
  GraphCache cache(*runtime, {.compile = {.slots = 1}});
  const auto declare = [](int64_t bytes) {
    return [=](Graph& g) {
      auto x = g.Buffer<char>("x", bytes), y = g.Buffer<char>("y", 1);
      g.Fill("fill", x, 'x');
      g.ParallelFor("use", 1, Take{}, Read(x), Write(y));
    };
  };
  for (const int64_t bytes : {300000, 310000, 320000, 600000, 300000}) {
    absl::StatusOr<penstock::Run> run = cache.Launch(declare(bytes));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  }
  EXPECT_EQ(cache.counts().compiled, 5);
  EXPECT_EQ(cache.counts().evicted, 3) << "two for the large one, and one for the last";
  EXPECT_EQ(cache.Launch(declare(2000000)).status().code(), absl::StatusCode::kResourceExhausted);
}

INSTANTIATE_TEST_SUITE_P(Host, Cache, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Cache, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::graph_cache_test

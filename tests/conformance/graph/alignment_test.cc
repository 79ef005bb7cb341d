// Arguments, functors and elements stand where their types ask for, in every kind of node, on every driver and in every
// mode. Where the host calls, probes in place of the library's own code look at the addresses that are handed to it.
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::alignment_test {
namespace {

constexpr int kN = 16;

template <int kAlign>
struct alignas(kAlign) Strict {
  int32_t v[8];
};
template <int kAlign>
Strict<kAlign> Filled(int32_t value) {
  Strict<kAlign> filled{};
  for (int32_t& v : filled.v) v = value;
  return filled;
}

// What a compiler takes for granted of a type it need not look at; of a number that is volatile it does.
template <int kAlign>
PENSTOCK_HOST_DEVICE int32_t Misplaced(const void* at) {
  volatile uintptr_t address = reinterpret_cast<uintptr_t>(at);
  return address % kAlign == 0 ? 0 : 1000;
}

template <int kAlign>
struct AddAll {
  Strict<kAlign> mine;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, char, Strict<kAlign> param, Strict<kAlign> value,
                                       View<const Strict<kAlign>> in, View<Strict<kAlign>> state,
                                       View<int32_t> x) const {
    const int64_t k = i % 8;
    x(i) += mine.v[k] + param.v[k] + value.v[k] + in(i).v[k] + state(i).v[k];
    x(i) += Misplaced<kAlign>(&in(i)) + Misplaced<kAlign>(&state(i));
  }
};

template <int kAlign>
TEST_KERNEL void AddOnDevice([[maybe_unused]] char, [[maybe_unused]] Strict<kAlign> param,
                             [[maybe_unused]] Strict<kAlign> value, [[maybe_unused]] const Strict<kAlign>* read,
                             [[maybe_unused]] int32_t* x) {
#if defined(__CUDA_ARCH__)
  const int i = static_cast<int>(threadIdx.x), k = i % 8;
  if (i < kN) x[i] += param.v[k] + value.v[k] + read->v[k] + Misplaced<kAlign>(read);
#endif
}

// Stands before the code that the library has for a node, and looks at the arguments that are strict.
template <int kAlign>
struct Probe {
  static inline std::atomic<int> calls{0}, indirect{0}, misplaced{0};
  static inline decltype(NodeCode::range) range = nullptr, indirect_range = nullptr;
  template <NodeKind kKind>
  static inline decltype(NodeCode::call) call = nullptr;
  template <NodeKind kKind>
  static inline decltype(NodeCode::call_fallback) fallback = nullptr;

  static void Look(std::initializer_list<const void*> strict) {
    ++calls;
    for (const void* const at : strict) misplaced += Misplaced<kAlign>(at) != 0;
  }
  static const void* Address(const void* at) { return *static_cast<const void* const*>(at); }

  static void Range(void* const* argv, int64_t first, int64_t end) {
    Look({argv[1], argv[3], argv[4]});
    range(argv, first, end);
  }
  static void IndirectRange(void* const* argv, int64_t first, int64_t end) {
    Look({argv[1], Address(argv[3]), argv[4]});
    ++indirect;
    indirect_range(argv, first, end);
  }
  template <NodeKind kKind>
  static absl::Status Call(void* f, LaunchContext* launch, void* const* argv) {
    Look({f, argv[1], argv[2]});
    return call<kKind>(f, launch, argv);
  }
  template <NodeKind kKind>
  static absl::Status Twin(void* f, void* const* argv) {
    Look({f, argv[1], argv[2], Address(argv[3])});
    return fallback<kKind>(f, argv);
  }

  // In all nodes but the fillers, before Compile copies them.
  static void Place(const Graph& graph) {
    calls = indirect = misplaced = 0;
    const auto put = [](auto& own, auto& saved, auto probe) {
      if (own != nullptr) saved = std::exchange(own, probe);
    };
    for (NodeDecl& node : const_cast<Model&>(graph.model()).nodes) {
      if (node.args.size() < 5) continue;
      put(node.code.range, range, &Range);
      put(node.code.indirect_range, indirect_range, &IndirectRange);
      if (node.kind == NodeKind::kHost) put(node.code.call, call<NodeKind::kHost>, &Call<NodeKind::kHost>);
      if (node.kind == NodeKind::kLaunch) {
        put(node.code.call, call<NodeKind::kLaunch>, &Call<NodeKind::kLaunch>);
        put(node.code.call_fallback, fallback<NodeKind::kLaunch>, &Twin<NodeKind::kLaunch>);
      }
      if (node.kind == NodeKind::kKernel)
        put(node.code.call_fallback, fallback<NodeKind::kKernel>, &Twin<NodeKind::kKernel>);
    }
  }
};

class Alignment : public GraphConformance {
 protected:
  // Nodes before and between take so many small arguments that blocks would begin anywhere.
  void AddFillers(Graph& g, ParamHandle<char> c, BufferHandle<int32_t> x, int count, const std::string& name) {
    for (int i = 0; i < count; ++i) {
      g.Host(name + std::to_string(i), [](char, std::span<int32_t>) {}, c, ReadWrite(x));
    }
  }

  template <int kAlign>
  void Check(int fillers) {
    using T = Strict<kAlign>;
    SCOPED_TRACE("aligned to " + std::to_string(kAlign) + ", after " + std::to_string(fillers));
    const std::vector<T> initial(kN, Filled<kAlign>(10000));
    absl::StatusOr<State<T>> state = runtime_->MakeState<T>("state", kN, std::span<const T>(initial));
    ASSERT_OK(state.status());
    Graph g("aligned");
    auto c = g.Param<char>("c");
    auto p = g.Param<T>("p");
    auto in = g.Input<T>("in", kN);
    auto x = g.InOut<int32_t>("x", kN);
    AddFillers(g, c, x, fillers, "before ");
    g.ParallelFor("for", kN, AddAll<kAlign>{Filled<kAlign>(1)}, c, p, Filled<kAlign>(10), Read(in), ReadWrite(*state),
                  ReadWrite(x));
    AddFillers(g, c, x, fillers, "between ");
    const auto on_host = [mine = Filled<kAlign>(4)](char, const T& param, const T& value, const T* read, int32_t* at) {
      for (int i = 0; i < kN; ++i) at[i] += param.v[i % 8] + value.v[i % 8] + read->v[i % 8] + mine.v[i % 8] - 4;
    };
    g.Kernel("kernel", AddOnDevice<kAlign>, Threads(kN), 'a', p, Filled<kAlign>(20), OnDevice(p), ReadWrite(x))
        .HostFallback(on_host);
    const auto seen = std::make_shared<std::atomic<int>>(0);
    const auto see = [seen, mine = Filled<kAlign>(7)](const T& param, const T& value) {
      *seen += param.v[7] >= 100 && value.v[7] == 25 && mine.v[7] == 7;
    };
    g.Launch(
         "launch",
         [see](LaunchContext&, char, const T& param, const T& value, const T*, int32_t*) { see(param, value); }, c, p,
         Filled<kAlign>(25), OnDevice(p), ReadWrite(x))
        .HostFallback([see](char, const T& param, const T& value, const T*, int32_t*) { see(param, value); });
    const auto host = [mine = Filled<kAlign>(5)](char, const T& param, const T& value, std::span<const T>,
                                                 std::span<int32_t> at) {
      for (size_t i = 0; i < kN; ++i) at[i] += param.v[i % 8] + value.v[i % 8] + mine.v[i % 8];
    };
    g.Host("host", host, c, p, Filled<kAlign>(30), Read(in), ReadWrite(x));
    g.Host("asked", host, c, p, Filled<kAlign>(40), Read(in), ReadWrite(x)).Infallible();
    Probe<kAlign>::Place(g);

    absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 3});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    const std::vector<T> ins(kN, Filled<kAlign>(500));
    for (int32_t param = 100; param <= 400; param += 100) {
      std::vector<int32_t> v(kN, 0);
      absl::StatusOr<penstock::Run> run =
          exec->Launch(io.Set(c, 'c').Set(p, Filled<kAlign>(param)).Set(in, ins).Set(x, v));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      // The ParallelFor, the kernel (with the value and what it reads on the device), the host nodes.
      const int32_t wanted =
          (1 + param + 10 + 500 + 10000) + (param + 20 + param) + (param + 30 + 5) + (param + 40 + 5);
      EXPECT_EQ(v, std::vector<int32_t>(kN, wanted)) << param;
    }
    EXPECT_EQ(Probe<kAlign>::misplaced, 0);
    EXPECT_GE(Probe<kAlign>::calls, on_cuda() ? 12 : 20);
    EXPECT_GE(*seen, 4);
  }
};

TEST_P(Alignment, EveryNodeGetsWhatItTakesWhereItsTypeAsksFor) {
  for (int fillers = 0; fillers < 3; ++fillers) {
    Check<16>(fillers);
    Check<32>(fillers);
    Check<64>(fillers);
    Check<128>(fillers);
    Check<256>(fillers);
  }
}

// In graphs, once several launches in a row have had other values for many nodes, and nothing else anew.
TEST_P(Alignment, ParametersThatNodesReadByReferenceStandSoToo) {
  using T = Strict<128>;
  constexpr int kNodes = 24, kLaunches = 12;
  Graph g("by reference");
  auto c = g.Param<char>("c");
  auto p = g.Param<T>("p");
  auto in = g.Input<T>("in", kN, kPinned);
  auto state = g.InOut<T>("state", kN, kPinned);
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  for (int i = 0; i < kNodes; ++i) {
    g.ParallelFor("for " + std::to_string(i), kN, AddAll<128>{Filled<128>(1)}, c, p, Filled<128>(10), Read(in),
                  ReadWrite(state), ReadWrite(x));
  }
  Probe<128>::Place(g);
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  absl::StatusOr<HostBuffer<T>> ins = runtime_->MakeHostBuffer<T>(kN), states = runtime_->MakeHostBuffer<T>(kN);
  absl::StatusOr<HostBuffer<int32_t>> v = runtime_->MakeHostBuffer<int32_t>(kN);
  ASSERT_TRUE(ins.ok() && states.ok() && v.ok());
  std::fill(ins->begin(), ins->end(), Filled<128>(500));
  std::fill(states->begin(), states->end(), Filled<128>(1000));
  std::fill(v->begin(), v->end(), 0);
  Bindings io = exec->bindings();
  io.Set(c, 'c').Set(in, *ins).Set(state, *states).Set(x, *v);
  int32_t wanted = 0;
  for (int32_t launch = 1; launch <= kLaunches; ++launch) {
    absl::StatusOr<penstock::Run> run = exec->Launch(io.Set(p, Filled<128>(launch)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    wanted += kNodes * (1 + launch + 10 + 500 + 1000);
    EXPECT_EQ((*v)[0], wanted) << launch;
    EXPECT_EQ((*v)[kN - 1], wanted) << launch;
  }
  EXPECT_EQ(Probe<128>::misplaced, 0);
  EXPECT_EQ(Probe<128>::indirect > 0, in_graphs() && !on_cuda() && !GetParam().resident) << "regions have values only";
}

INSTANTIATE_TEST_SUITE_P(Host, Alignment, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Alignment, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::alignment_test

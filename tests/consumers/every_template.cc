// Instantiates what the public headers have of templates, as a user's file does: scripts/check_headers.sh compiles it
// under the warnings, compilers, standards and switches that users have. Nothing links or runs it.
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/ps.h"
#if __has_include(<cuda_runtime_api.h>)
#include "penstock/cuda.h"
#endif
#if __has_include(<cublas_v2.h>) && __has_include(<cufft.h>) && __has_include(<cusolverDn.h>)
#include "penstock/cublas.h"
#include "penstock/cufft.h"
#include "penstock/cusolver.h"
#define HAVE_LIBRARIES 1
#endif

namespace {

struct Add {
  float by;
  PS_HOST_DEVICE void operator()(int64_t i, const float* x, ps::View<float> y, int n) const {
    y(i) = x[i] + by + static_cast<float>(n);
  }
};
struct AnyRank {
  PS_HOST_DEVICE void operator()(int64_t i, ps::View<float> y) const { y(i) = 1; }
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<float> y) const { y(i.y, i.x) = 2; }
  PS_HOST_DEVICE void operator()(ps::Index3 i, ps::View<float> y) const { y(i.z, i.y, i.x) = 3; }
};
struct Generic {
  PS_HOST_DEVICE auto operator()(auto i, ps::View<float> y) const { y(i.y, i.x) = 4; }
};
struct AllParts {
  PS_HOST_DEVICE void operator()(int64_t i, ps::Views<const float> parts, ps::View<float> y) const {
    for (const ps::View<const float>& part : parts) y(i) += part(i) + parts[0](i);
  }
};
struct Tile {
  PS_HOST_DEVICE void operator()(const ps::Block& block, ps::View<float> y, int n) const {
    float* const tile = block.Shared<float>(n);
    for (int64_t i = block.Index(); i < n; i += block.Size()) tile[i] = y(i);
    block.Sync();
    block.Each(n, [&](int64_t i) { y(i) = tile[n - 1 - i]; });
  }
};
struct Plus {
  PS_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct IsPositive {
  PS_HOST_DEVICE bool operator()(float x) const { return x > 0; }
};
struct Scale {
  PS_HOST_DEVICE void operator()(int64_t i, float by, float* y) const { y[i] *= by; }
};
struct Product {
  PS_HOST_DEVICE float operator()(int64_t i, const float* x, float by, ps::View<float> y) const {
    return y(i) = x[i] * by;
  }
};
struct OfParts {
  PS_HOST_DEVICE short operator()(auto i, ps::Views<const float> parts) const {
    return static_cast<short>(parts[0](i.y, i.x));
  }
};
#if defined(__CUDACC__)
__global__
#endif
    void
    Kernel(const float* x, float* y, int n) {
  y[0] = x[0] + static_cast<float>(n);
}
#if defined(__CUDACC__)
__global__
#endif
    void
    Table(ps::ViewTable<const float, 4> from, float* to) {
  to[0] = from[0](0) + static_cast<float>(from.size());
}
#if defined(__CUDACC__)
__global__
#endif
    void
    Awaiting(int n, float* x) {
  PS_AWAIT_DEPENDENCIES();
  x[0] = static_cast<float>(n);
}
struct IsLess {
  PS_HOST_DEVICE bool operator()(float a, ps::View<const float> b) const { return a < b(0); }
};
struct Handle {
  explicit Handle(const ps::LaunchContext& launch, int number = 0, const char* text = "")
      : stream(launch.native_stream()), name(text + std::to_string(number)) {}
  void* stream;
  std::string name;
};
struct Factory {
  static absl::StatusOr<std::unique_ptr<Factory>> Make(const ps::LaunchContext&, size_t bytes) {
    return std::make_unique<Factory>(Factory{bytes});
  }
  size_t bytes;
};
[[maybe_unused]] absl::Status ByHandles([[maybe_unused]] ps::LaunchContext& launch, [[maybe_unused]] float* x) {
#if defined(HAVE_LIBRARIES)
  PS_ASSIGN_OR_RETURN(ps::Cublas * blas, launch.Get<ps::Cublas>());
  PS_ASSIGN_OR_RETURN(ps::Cublas * host, launch.Get<ps::Cublas>(ps::CublasOptions{.workspace_bytes = 0}));
  PS_ASSIGN_OR_RETURN(ps::Cusolver * solver, launch.Get<ps::Cusolver>());
  PS_ASSIGN_OR_RETURN(ps::CudaWorkspace * work, launch.Get<ps::CudaWorkspace>(size_t{64}));
  PS_ASSIGN_OR_RETURN(ps::Cufft * fft, launch.Get<ps::Cufft>(ps::CufftShape{.n = {8, 8}, .type = CUFFT_R2C}));
  PS_RETURN_IF_ERROR(ps::ToStatus(cublasSscal(blas->handle(), 1, launch.Zero<float>(), x, 1), "cublasSscal"));
  PS_RETURN_IF_ERROR(ps::ToStatus(cusolverDnSetStream(solver->handle(), ps::CudaStream(launch))));
  return ps::ToStatus(cufftExecR2C(fft->plan(), x, static_cast<cufftComplex*>(work->data())),
                      host->handle() == nullptr ? "no handle" : "cufftExecR2C");
#else
  return absl::OkStatus();
#endif
}
struct Item {
  std::vector<float> in, out;
};

struct Handles {
  ps::BufferHandle<float> x, y;
  ps::ParamHandle<int> n;
};

Handles Declare(ps::Graph& g, const ps::State<float>& state, const ps::ReplicatedState<float>& replicas) {
  const auto n = g.Param<int>("n", ps::AtMost(64));
  const auto alpha = g.Param<float>("alpha");
  const auto x = g.Input<float>("x", n), y = g.Output<float>("y", n);
  const auto slot = g.InOut<float>("slot", {2, 3}, ps::kSlot), keyed = g.KeyedState<float>("keyed", {2, 3});
  const auto scratch = g.Buffer<float>("scratch", ps::Pitched({4, 4}, 8), ps::kPinned);
  const auto part = g.Alias("part", scratch, ps::Slice({0, 0}, {2, 3}));
  const auto bytes = g.Alias<uint8_t>("bytes", slot);
  const std::vector<ps::AccessOf<float, ps::AccessMode::kRead>> parts{ps::Read(x), ps::Read(x)};
  g.ParallelFor("parts", n, AllParts{}, ps::All(parts), ps::ReadWrite(y));
  const std::array<ps::BufferHandle<float>, 2> both{x, x};
  g.ParallelFor("all", n, AllParts{}, ps::ReadAll(both), ps::ReadWrite(y));
  g.Host(
      "write all", [](ps::Views<float>, ps::Views<float>) {}, ps::WriteAll(std::vector{y}),
      ps::ReadWriteAll(std::span(&state, 1)));
  g.Kernel("table", Table, ps::Threads(n), ps::All(parts), ps::ReadWrite(y))
      .HostFallback([](ps::Views<const float> from, float* to) { to[0] = from[1](0); });
  g.Host("nothing", [] {});
  g.Host(
      "views", [](ps::Views<const float> from, std::span<float> to) { to[0] = from[0](0); }, ps::All(parts),
      ps::ReadWrite(y));
  g.Launch("submit", [](ps::LaunchContext&, ps::Views<const float>, float*) {}, ps::All(parts), ps::ReadWrite(y));
  ps::NodeRef add = g.ParallelFor("add", n, Add{1}, ps::Read(x), ps::Write(y), n).Priority(1).InPlace(x, y);
  g.ParallelFor("list", {2, 3}, AnyRank{}, ps::ReadWrite(part)).After(add);
  g.ParallelFor("extent", ps::Extent{2, 3}, AnyRank{}, ps::Unordered(ps::ReadWrite(slot)));
  g.ParallelFor("generic", {2, 3}, Generic{}, ps::ReadWrite(keyed));
  g.Task("tile", {.threads = 64, .shared_bytes = 64 * sizeof(float)}, Tile{}, ps::ReadWrite(y), n).After(add);
  g.Task("small tile", Tile{}, ps::ReadWrite(state), 0);
  g.Kernel("kernel", Kernel, ps::Threads(n), ps::Read(x), ps::ReadWrite(y), 3)
      .HostFallback([](const float*, float*, int) { return absl::OkStatus(); })
      .On(0);
  g.Kernel("blocks", Kernel, ps::Blocks({n, 1, 1}, {32, 1, 1}).Programmatic(), ps::OnDevice(alpha), ps::ReadWrite(y),
           n);
  const auto work = g.Buffer<float>("work", 64);
  g.Kernel("some", Kernel, ps::Threads(n), ps::Read(x), ps::WriteSome(y), 3)
      .HostFallback([](const float*, float*, int) {});
  g.Kernel("some of states", Kernel, ps::Threads(n), ps::WriteSome(state), ps::WriteSome(replicas), 3)
      .HostFallback([](const float*, float*, int) {});
  g.Kernel("scratch", Kernel, ps::Threads(n), ps::Read(x), ps::Scratch(work), 3)
      .HostFallback([](const float*, float*, int) {});
  g.Launch(
       "launch",
       [](ps::LaunchContext& launch, const float* from, float* to) {
         (void)launch.Get<Handle>().stream;
         (void)launch.Get<Handle>(3, "three").name;
         (void)launch.Get<Factory>(size_t{5}).value()->bytes;
         (void)launch.Zero<float>();
         to[0] = from[0];
       },
       ps::Read(state), ps::ReadWrite(y))
      .HostFallback([](const float*, float*) {});
  g.Kernel("awaiting", Awaiting, ps::Threads(n).Programmatic(), n, ps::ReadWrite(y));
  g.Launch("on cuda", PS_ON_CUDA(ByHandles), ps::ReadWrite(y)).HostFallback([](float*) {});
  g.Launch("lambda", PS_ON_CUDA([](ps::LaunchContext& launch, float* to) { return ByHandles(launch, to); }),
           ps::ReadWrite(y));
  g.Host(
       "host", [](std::span<const float> from, ps::View<float> to) { to(0) = from[0]; }, ps::Read(x), ps::ReadWrite(y))
      .Concurrency(2);
  g.Host(
       "status",
       [](std::span<float> all, float by) { return all.empty() ? absl::OkStatus() : (all[0] = by, absl::OkStatus()); },
       ps::ReadWrite(y), alpha)
      .Infallible();
  g.Copy("copy", part, slot);
  g.Copy("boxes", ps::Read(replicas), ps::Write(state, ps::Slice({0}, {n})));
  g.Fill("fill", ps::Write(bytes), 1);
  g.Fill("use", g.Use(state), 0);
  const auto sums = g.Output<double>("sums", 4);
  const auto at = [&](int i) { return ps::Write(sums, ps::Slice({i}, {1})); };
  g.Reduce("sum", ps::Read(x), at(0)).After(add).On(0).Priority(1);
  g.Reduce("least", ps::Read(state), at(1), ps::Min());
  g.Reduce("greatest", ps::Read(scratch, ps::Slice({0, 0}, {2, 2})), at(2), ps::Max());
  g.Reduce("bytes", ps::Read(bytes), ps::Write(g.Buffer<uint8_t>("byte", 1)), ps::Max(), 1);
  g.TransformReduce("product", n, Product{}, Plus{}, 0, ps::Read(x), alpha, ps::ReadWrite(y),
                    ps::Write(g.Buffer<float>("product", 1)));
  g.TransformReduce("parts of", {2, 3}, OfParts{}, ps::Plus(), 0, ps::All(std::vector{ps::Read(slot)}), at(3));
  const auto sum = g.Buffer<float>("sum", 1);
  const auto count = g.Buffer<int64_t>("count", 1);
  const auto few = g.Buffer<int32_t>("few", 2);
  const auto capped = g.Buffer<bool>("capped", 1);
  const auto body = [&](ps::Graph& in) { in.Copy(ps::Name("copy again"), part, slot); };
  g.If("if", ps::When(IsLess{}, alpha, ps::Read(sum)), body);
  g.If("if else", ps::When(IsLess{}, 1.F, ps::Read(sum)), body, body);
  g.Switch("switch", ps::When(IsLess{}, 1.F, ps::Read(sum)), body, body);
  g.While("while", ps::When(IsLess{}, 1.F, ps::Read(sum)), {.max = 5}, body);
  g.While("counted", ps::When(IsLess{}, 1.F, ps::Read(sum)).Count(count).Capped(capped), {}, body);
  g.While("few", ps::When(IsLess{}, 1.F, ps::Read(sum)).Capped(count).Count(ps::Write(few, ps::Slice({1}, {1}))), {},
          body);
  g.Repeat("repeat", n, body);
  g.Repeat("repeat count", ps::Read(count), body);
  g.Repeat("repeat few", ps::Read(few, ps::Slice({1}, {1})), body);
  const auto rest = g.Buffer<float>("rest", n);
  ps::Select(g, "select", ps::Read(x), ps::Write(rest), ps::Write(few, ps::Slice({0}, {1})), IsPositive{});
  ps::Select(g, "select of", ps::CountOf(count, n), ps::Read(x), ps::Write(rest), ps::Write(count), IsPositive{});
  ps::Select(g, "late", ps::Read(x), ps::Write(rest), ps::Write(count), ps::GreaterThan(0.5F));
  ps::Select(g, "early", ps::Read(x), ps::Write(rest), ps::Write(count), ps::LessOrEqual(0.5F));
  ps::Histogram(g, "bins", ps::Read(x), ps::Write(few), ps::EvenBins(0.F, 1.F, 2));
  ps::Histogram(g, "bins of", ps::CountOf(count, n), ps::Read(x), ps::Write(few), ps::EvenBins(0.F, 1.F, 2));
  const auto returned = g.Output<float>("returned", ps::CountOf(count, n));
  g.Output<float>("of few", ps::CountOf(ps::Read(few, ps::Slice({1}, {1})), 8), ps::kPinned);
  g.Kernel("by occupancy", Kernel, ps::Threads(n, ps::kOccupancy, 64), ps::Read(x), ps::WriteSome(returned), 3)
      .Nondeterministic()
      .HostFallback([](const float*, float*, int) { return absl::OkStatus(); });
  g.Deterministic();
  (void)ps::Run().count(returned);
  ps::Scan(g, "scan", ps::Read(x), ps::Write(rest)).After(add).On(0).Priority(1);
  ps::Scan(g, "scan before", ps::Read(x), ps::Write(rest), ps::Max(), ps::kExclusive);
  ps::Scan(g, "scan from", ps::Read(x), ps::Write(rest), Plus{}, 1, {.order = ps::CombineOrder::kAny});
  ps::Scan(g, "scan of", ps::CountOf(count, n), ps::Read(x), ps::Write(rest));
  ps::Scan(g, "scan of from", ps::CountOf(count, n), ps::Read(x), ps::Write(rest), ps::Plus(), 1, ps::kInclusive);
  ps::Transform(g, "transform", ps::Read(x), ps::Write(rest), IsPositive{});
  ps::Transform(g, "transform two", ps::Read(x), ps::Read(rest), ps::Write(rest), Plus{});
  const auto floats = g.Param<float>("floats");
  const auto u = ps::expr::Of(g.Input<float>("u", n)), v = ps::expr::Of(g.Input<float>("v", n), ps::Box());
  const auto low = ps::expr::Select((u < v && !(u == 0)) || v >= 1, u - v * 2, 0.5) / u + ps::expr::Of(floats);
  ps::Map(g, "map", ps::Write(g.Buffer<double>("mapped", n)), ps::expr::Cast<double>(-low + ps::expr::Abs(u)));
  ps::Map(g, "map functions", ps::Write(g.Buffer<float>("functions", n)),
          ps::expr::Pow(ps::expr::Sqrt(ps::expr::Exp(ps::expr::Log(ps::expr::Tanh(u)))), ps::expr::Clamp(v, 0, 1)));
  ps::Map(g, "map bytes", ps::Write(g.Buffer<uint8_t>("bytes", n)), 7);
  g.ParallelFor("counted", ps::CountOf(ps::Read(few, ps::Slice({1}, {1})), n), Scale{}, alpha, ps::ReadWrite(rest));
  ps::Reduce(g, "reduce", replicas, Plus{}, 0);
  ps::Broadcast(g, "broadcast", replicas, 0);
  return {x, y, n};
}

absl::Status Launch(ps::Runtime& runtime, ps::Executable exec, const Handles& h) {
  std::vector<float> in(64);
  std::array<float, 64> out{};
  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> pinned, runtime.MakeHostBuffer<float>(64));
  PS_ASSIGN_OR_RETURN(ps::DeviceBuffer<float> device, runtime.MakeDeviceBuffer<float>(64));
  ps::Bindings io = exec.bindings().Set(h.n, 3).Set(h.x, in).SetKey(ps::Key(1));
  float variable = 0;
  io.Set(h.y, variable)
      .Set(h.y, out)
      .Set(h.y, pinned.first(3), pinned.block())
      .Set(h.x, pinned)
      .Set(h.x, std::move(pinned));
  io.Set(h.y, device).On(ps::NativeStream{}).ClearBuffers();
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io, std::chrono::seconds(1)));
  PS_RETURN_IF_ERROR(exec.Launch().status());
  PS_RETURN_IF_ERROR(exec.TryLaunch(std::chrono::seconds(1)).status());
  io.After(h.x, run).After(h.x, ps::NativeEvent{}).After(h.x, {run, run}, {ps::NativeEvent{}});
  io.After(h.x, std::vector<ps::Run>{run});
  run.OnDone([](const absl::Status&) {});
  if (!run || !io.Has(h.x) || !io.Has(h.n)) return absl::InternalError("nothing set");
  PS_ASSIGN_OR_RETURN(ps::Lease lease, exec.Acquire());
  for (float& v : lease.span(h.x)) v = 0;
  PS_ASSIGN_OR_RETURN(ps::State<float> of_key, exec.StateOf(h.x, ps::Key(1)));
  PS_RETURN_IF_ERROR(of_key.Set(in, std::chrono::steady_clock::now()));
  PS_ASSIGN_OR_RETURN(ps::ExportedGraph exported, exec.Export(io));
  PS_RETURN_IF_ERROR(exported.status());
  return of_key.Read(in);
}

absl::Status Replay(ps::Runtime& runtime, const ps::State<float>& state, const ps::ReplicatedState<float>& replicas) {
  ps::GraphCache cache(runtime, {.limit = 2, .name = std::string("step")});
  std::vector<float> in(64);
  PS_ASSIGN_OR_RETURN(ps::Run run, cache.Launch([&](ps::Graph& g, ps::Bindings& io) {
    const Handles h = Declare(g, state, replicas);
    io.Set(h.n, 2).Set(h.x, in);
    return absl::OkStatus();
  }));
  return cache.Launch([](ps::Graph&) {}).status();
}

absl::Status Stream(ps::Runtime& runtime, const ps::Graph& graph, const ps::Executable& exec, const Handles& h) {
  ps::Stages<Item> stages;
  stages.Host("first", [](Item& item) { item.in.resize(64); }, {.workers = 2});
  stages.Run("run", exec, [&](ps::Item<Item>& item) {
    item.Set(h.x, item->in).Set(h.y, item.value().out).Set(h.n, item.Has(h.x) ? 3 : 4);
  });
  stages.Run("again", exec).Then("then", exec, {{h.y, h.x}}).Then("and", exec, {{h.y, h.x}}, [](ps::Item<Item>&) {});
  PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<Item>::Create(std::move(stages), {.order = ps::kPerKey}));
  PS_RETURN_IF_ERROR(pipe.Push(Item(), ps::Key(1), {.id = 1, .deadline = std::chrono::milliseconds(40)}));
  PS_RETURN_IF_ERROR(pipe.TryPush(Item()));
  const Item popped = pipe.Pop().value();
  PS_ASSIGN_OR_RETURN(auto place, pipe.TryAcquire());
  PS_RETURN_IF_ERROR(place.Submit());
  PS_RETURN_IF_ERROR(
      pipe.Run([] { return std::optional<Item>(); }, [](ps::Item<Item>&) {}, [](const Item&) { return ps::Key(1); }));
  PS_RETURN_IF_ERROR(pipe.RunBatch([] { return std::optional<Item>(); }, [](ps::Item<Item>&) {}));
  PS_ASSIGN_OR_RETURN(auto plain, ps::Pipeline<>::Create(runtime, graph));
  if (ps::Item<> item = plain.Pop()) {
    if (item.count(h.y).ok()) return absl::OkStatus();
    return item.Set(h.n, 1).status();
  }
  return pipe.Drain(std::chrono::minutes(1));
}

}  // namespace

absl::Status UseAll(ps::Runtime& runtime) {
  const std::vector<float> initial(64);
  PS_ASSIGN_OR_RETURN(ps::State<float> state, runtime.MakeState<float>("state", 64, initial));
  PS_ASSIGN_OR_RETURN(auto replicas, runtime.MakeReplicatedState<float>("replicas", 64, initial));
  PS_RETURN_IF_ERROR(replicas.Set(initial));
  PS_RETURN_IF_ERROR(state.Set(initial, ps::Slice(0, 64)));
  PS_ASSIGN_OR_RETURN(const ps::Transfer set, state.StartSet(initial, {.box = ps::Slice(0, 64)}));
  PS_RETURN_IF_ERROR(set.Wait());
  PS_ASSIGN_OR_RETURN(ps::DeviceBuffer<float> device, runtime.MakeDeviceBuffer<float>(64));
  PS_ASSIGN_OR_RETURN(state, runtime.AdoptState("adopted", 64, device));
  PS_ASSIGN_OR_RETURN(state, runtime.AdoptState<float>("adopted", 64, std::span(state.data(), 64)));
  PS_RETURN_IF_ERROR(replicas.Reset());
  ps::Graph graph("graph");
  const Handles h = Declare(graph, state, replicas);
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.devices = runtime.all_devices()}));
  PS_RETURN_IF_ERROR(Launch(runtime, exec, h));
  PS_RETURN_IF_ERROR(Replay(runtime, state, replicas));
#if __has_include(<cuda_runtime_api.h>)
  graph.Launch("event", ps::WaitForEvent{nullptr}, ps::Read(h.x));
  graph.Launch("signal", ps::SignalEvent{nullptr}, ps::Read(h.x));
  graph.Launch("child", ps::CudaGraph(nullptr), ps::Read(h.x), 1);
  exec.bindings().On(ps::Native(cudaStream_t())).After(h.x, ps::Native(cudaEvent_t()));
#endif
  return Stream(runtime, graph, exec, h);
}

// Loops and branches with CUDA alone: graphs of kernels with programmatic edges, made by the driver's own calls.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"

namespace bench {

constexpr int kWidth = 256;  // floats that a kernel adds 1 to
constexpr int kAtOnce = 8;  // predicated iterations of a graph

inline void CheckDriver(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) Fail(std::string(what) + ": error " + std::to_string(code));
}

__device__ inline void AwaitBefore() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

struct HandLoop {
  int32_t left;
  uint32_t stop;
};

__global__ void HandBegin(HandLoop* loop, int32_t from, cudaGraphConditionalHandle handle) {
  AwaitBefore();
  loop->left = from;
  loop->stop = 0;
  if (handle != 0) cudaGraphSetConditional(handle, from > 0 ? 1 : 0);
}
__global__ void HandAdd(float* x) {
  AwaitBefore();
  x[blockIdx.x * kWidth + threadIdx.x] += 1;
}
__global__ void HandLook(HandLoop* loop, const volatile uint32_t* stop) {
  AwaitBefore();
  if (const uint32_t found = *stop; found != 0) *static_cast<volatile uint32_t*>(&loop->stop) = found;
}
// Counts an iteration, and decides.
__global__ void HandDecide(HandLoop* loop, cudaGraphConditionalHandle handle) {
  AwaitBefore();
  const int32_t left = --loop->left;
  cudaGraphSetConditional(handle, left > 0 && *static_cast<volatile uint32_t*>(&loop->stop) == 0 ? 1 : 0);
}
__global__ void HandPick(const uint32_t* value, cudaGraphConditionalHandle handle) {
  AwaitBefore();
  cudaGraphSetConditional(handle, *value);
}
__global__ void HandCount(HandLoop* loop) {
  AwaitBefore();
  --loop->left;
}
// The same if the loop goes on.
__global__ void HandAddIf(const HandLoop* loop, float* x) {
  AwaitBefore();
  if (loop->left <= 0) return;
  x[blockIdx.x * kWidth + threadIdx.x] += 1;
}
__global__ void HandCountIf(HandLoop* loop) {
  AwaitBefore();
  if (loop->left > 0) --loop->left;
}
// Tells the host, in mapped memory, what is left after so many graphs.
__global__ void HandTell(HandLoop* loop, volatile uint64_t* word) {
  AwaitBefore();
  loop->stop += 1;
  *word = (static_cast<uint64_t>(loop->stop) << 32) | static_cast<uint32_t>(loop->left);
}

class HandGraph {
 public:
  using Node = CUgraphNode;

  HandGraph() { Check(cudaGraphCreate(&graph_, 0), "creating a graph"); }
  explicit HandGraph(CUgraph body) : graph_(body), is_body_(true) {}
  HandGraph(HandGraph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)), is_body_(other.is_body_) {}
  HandGraph& operator=(HandGraph&&) = delete;
  ~HandGraph() {
    if (graph_ != nullptr && !is_body_) (void)cudaGraphDestroy(graph_);
  }

  // A kernel of one block.
  template <class... Params, class... Args>
  Node Add(std::vector<Node> after, void (*kernel)(Params...), unsigned threads, Args... args) {
    return AddGrid(std::move(after), kernel, 1, threads, args...);
  }
  template <class... Params, class... Args>
  Node AddGrid(std::vector<Node> after, void (*kernel)(Params...), unsigned blocks, unsigned threads, Args... args) {
    cudaKernel_t loaded = nullptr;
    Check(cudaGetKernel(&loaded, reinterpret_cast<const void*>(kernel)), "getting a kernel");
    std::tuple<Params...> values(args...);
    return std::apply(
        [&](auto&... value) {
          void* argv[] = {&value...};
          CUgraphNodeParams params{};
          params.type = CU_GRAPH_NODE_TYPE_KERNEL;
          params.kernel.kern = reinterpret_cast<CUkernel>(loaded);
          params.kernel.gridDimX = blocks;
          params.kernel.gridDimY = params.kernel.gridDimZ = 1;
          params.kernel.blockDimX = threads;
          params.kernel.blockDimY = params.kernel.blockDimZ = 1;
          params.kernel.kernelParams = argv;
          std::vector<CUgraphEdgeData> edges(after.size(), CUgraphEdgeData{});
          if (after.size() == 1 && after[0] != conditional_) {
            edges[0].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
            edges[0].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
          }
          Node node = nullptr;
          CheckDriver(add_(&node, graph_, after.data(), edges.data(), after.size(), &params), "adding a kernel");
          return node;
        },
        values);
  }

  cudaGraphConditionalHandle MakeHandle() {
    cudaGraphConditionalHandle handle = 0;
    Check(cudaGraphConditionalHandleCreate(&handle, graph_, 0, 0), "making a handle");
    return handle;
  }
  std::pair<Node, std::vector<HandGraph>> AddConditional(std::vector<Node> after, cudaGraphConditionalHandle handle,
                                                         CUgraphConditionalNodeType type, unsigned bodies) {
    CUcontext context = nullptr;
    CheckDriver(DriverCall<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent", 4000)(&context), "asking for the context");
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = bodies;
    params.conditional.ctx = context;
    Node node = nullptr;
    std::vector<CUgraphEdgeData> edges(after.size(), CUgraphEdgeData{});
    CheckDriver(add_(&node, graph_, after.data(), edges.data(), after.size(), &params), "adding a conditional node");
    conditional_ = node;
    std::vector<HandGraph> graphs;
    for (unsigned b = 0; b < bodies; ++b) graphs.emplace_back(params.conditional.phGraph_out[b]);
    return {node, std::move(graphs)};
  }

  cudaGraphExec_t Instantiate() const {
    cudaGraphExec_t exec = nullptr;
    Check(cudaGraphInstantiate(&exec, graph_, 0), "instantiating a graph");
    return exec;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  bool is_body_ = false;
  Node conditional_ = nullptr;
  PFN_cuGraphAddNode_v12030 add_ = DriverCall<PFN_cuGraphAddNode_v12030>("cuGraphAddNode", 12030);
};

// The kernels of an iteration: a chain, or side by side. Returns those that are last.
struct HandBody {
  int chain, wide;
  template <class AddKernel>
  std::vector<CUgraphNode> Add(CUgraphNode before, AddKernel add) const {
    std::vector<CUgraphNode> first, ends;
    if (before != nullptr) first.push_back(before);
    if (wide == 0) {
      std::vector<CUgraphNode> last = first;
      for (int k = 0; k < chain; ++k) last = {add(last, 0)};
      return last;
    }
    for (int k = 0; k < wide; ++k) ends.push_back(add(first, k));
    return ends;
  }
};

// Memory and a stream that the loops by hand use.
class HandState {
 public:
  explicit HandState(int arrays)
      : arrays_(arrays),
        x(MakeDeviceMemory<float>(static_cast<size_t>(arrays) * kWidth)),
        loop(MakeDeviceMemory<HandLoop>(1)),
        stream(MakeStream()) {
    Check(cudaMallocHost(&stop, sizeof(*stop)), "allocating pinned memory");
    Check(cudaMallocHost(&word, sizeof(*word)), "allocating pinned memory");
    Check(cudaMallocHost(&left, sizeof(*left)), "allocating pinned memory");
    *stop = 0;
  }
  void Clear() const {
    Check(cudaMemsetAsync(x, 0, sizeof(float) * arrays_ * kWidth, stream), "clearing");
    Check(cudaStreamSynchronize(stream), "clearing");
  }
  std::vector<float> Floats() const {
    std::vector<float> floats(static_cast<size_t>(arrays_) * kWidth);
    Check(cudaMemcpy(floats.data(), x, floats.size() * sizeof(float), cudaMemcpyDeviceToHost), "reading");
    return floats;
  }

 private:
  const int arrays_;

 public:
  float* const x;
  HandLoop* const loop;
  const cudaStream_t stream;
  uint32_t* stop = nullptr;
  uint64_t* word = nullptr;
  HandLoop* left = nullptr;
};

// A While node.
class DeviceLoopByHand {
 public:
  DeviceLoopByHand(HandState& state, const HandBody& body, int iterations) : state_(state) {
    const auto handle = graph_.MakeHandle();
    const auto begin = graph_.Add({}, HandBegin, 1, state.loop, iterations, handle);
    auto [node, bodies] = graph_.AddConditional({begin}, handle, CU_GRAPH_COND_TYPE_WHILE, 1);
    HandGraph& in = bodies[0];
    in.Add({}, HandLook, 1, state.loop, state.stop);
    const auto ends = body.Add(
        nullptr, [&](const auto& after, int k) { return in.Add(after, HandAdd, kWidth, state.x + k * kWidth); });
    in.Add(ends, HandDecide, 1, state.loop, handle);
    exec_ = graph_.Instantiate();
  }
  void Run() const {
    Check(cudaGraphLaunch(exec_, state_.stream), "launching");
    Check(cudaStreamSynchronize(state_.stream), "waiting");
  }
  void Launch() const { Check(cudaGraphLaunch(exec_, state_.stream), "launching"); }

 private:
  HandState& state_;
  HandGraph graph_;
  cudaGraphExec_t exec_ = nullptr;
};

// A graph of an iteration, whose word the host reads back each time.
class ReadBackByHand {
 public:
  ReadBackByHand(HandState& state, const HandBody& body, int iterations) : state_(state), iterations_(iterations) {
    const auto ends = body.Add(
        nullptr, [&](const auto& after, int k) { return graph_.Add(after, HandAdd, kWidth, state.x + k * kWidth); });
    graph_.Add(ends, HandCount, 1, state.loop);
    exec_ = graph_.Instantiate();
  }
  void Run() const {
    HandBegin<<<1, 1, 0, state_.stream>>>(state_.loop, iterations_, 0);
    do {
      Check(cudaGraphLaunch(exec_, state_.stream), "launching");
      Check(cudaMemcpyAsync(state_.left, state_.loop, sizeof(HandLoop), cudaMemcpyDeviceToHost, state_.stream),
            "reading");
      Check(cudaStreamSynchronize(state_.stream), "waiting");
    } while (state_.left->left > 0);
  }

 private:
  HandState& state_;
  const int iterations_;
  HandGraph graph_;
  cudaGraphExec_t exec_ = nullptr;
};

// Graphs of predicated iterations, two ahead of the host, which polls a mapped word.
class RunAheadByHand {
 public:
  RunAheadByHand(HandState& state, const HandBody& body, int iterations) : state_(state), iterations_(iterations) {
    CUgraphNode last = nullptr;
    for (int i = 0; i < kAtOnce; ++i) {
      const auto ends = body.Add(last, [&](const auto& after, int k) {
        return graph_.Add(after, HandAddIf, kWidth, state.loop, state.x + k * kWidth);
      });
      last = graph_.Add(ends, HandCountIf, 1, state.loop);
    }
    graph_.Add({last}, HandTell, 1, state.loop, state.word);
    exec_ = graph_.Instantiate();
  }
  void Run() const {
    std::atomic_ref<uint64_t> word(*state_.word);
    word.store(UINT32_MAX);
    HandBegin<<<1, 1, 0, state_.stream>>>(state_.loop, iterations_, 0);
    for (uint32_t launched = 0;;) {
      const uint64_t seen = word.load(std::memory_order_acquire);
      const auto graphs = static_cast<uint32_t>(seen >> 32);
      if (static_cast<int32_t>(seen) <= 0 && seen != UINT32_MAX) break;
      if (launched < graphs + 2) {
        Check(cudaGraphLaunch(exec_, state_.stream), "launching");
        ++launched;
      }
    }
    Check(cudaStreamSynchronize(state_.stream), "waiting");
  }

 private:
  HandState& state_;
  const int iterations_;
  HandGraph graph_;
  cudaGraphExec_t exec_ = nullptr;
};

// One of several bodies of two kernels, or the kernels without a conditional node. `value` picks.
class PickByHand {
 public:
  PickByHand(HandState& state, const uint32_t* value, unsigned bodies, bool plain) : state_(state) {
    const auto add = [&](HandGraph& to, std::vector<CUgraphNode> after) {
      const auto first = to.Add(std::move(after), HandAdd, kWidth, state.x);
      return to.Add({first}, HandAdd, kWidth, state.x);
    };
    if (plain) {
      CUgraphNode before = graph_.Add({}, HandAdd, kWidth, state.x);
      before = add(graph_, {before});
      graph_.Add({before}, HandAdd, kWidth, state.x);
    } else {
      const auto handle = graph_.MakeHandle();
      const auto before = graph_.Add({}, HandAdd, kWidth, state.x);
      const auto pick = graph_.Add({before}, HandPick, 1, value, handle);
      const auto type = bodies == 1 ? CU_GRAPH_COND_TYPE_IF : CU_GRAPH_COND_TYPE_SWITCH;
      auto [node, graphs] = graph_.AddConditional({pick}, handle, type, bodies);
      for (HandGraph& body : graphs) add(body, {});
      graph_.Add({node}, HandAdd, kWidth, state.x);
    }
    exec_ = graph_.Instantiate();
  }
  void Run() const {
    Check(cudaGraphLaunch(exec_, state_.stream), "launching");
    Check(cudaStreamSynchronize(state_.stream), "waiting");
  }

 private:
  HandState& state_;
  HandGraph graph_;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace bench

// The ways to make CUDA graphs by hand, to launch them and to change them:
//
//   nodes by the runtime API  cudaGraphAddKernelNode, cudaGraphLaunch
//   nodes by the driver API   cuGraphAddKernelNode, cuGraphLaunch, by pointers: no runtime in between
//   the same, one root        a kernel that is switched off before all that begins: wide graphs are launched faster so
//   programmatic edges        the driver API's again, with and without the root: a kernel is launched while those that
//                             it depends on are ending (all kernels begin by waiting)
//   captured                  from one stream (chain) or eight (stencil) and events, by the driver's calls too
//
// Threads: single-threaded.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstring>
#include <vector>

#include "cuda_check.cuh"
#include "raw_work.cuh"

namespace bench {

struct DriverCalls {
  PFN_cuGraphAddKernelNode_v12000 add = DriverCall<PFN_cuGraphAddKernelNode_v12000>("cuGraphAddKernelNode", 12000);
  PFN_cuGraphAddNode_v12030 add_any = DriverCall<PFN_cuGraphAddNode_v12030>("cuGraphAddNode", 12030);
  PFN_cuGraphExecKernelNodeSetParams_v12000 set =
      DriverCall<PFN_cuGraphExecKernelNodeSetParams_v12000>("cuGraphExecKernelNodeSetParams", 12000);
  PFN_cuGraphKernelNodeSetParams_v12000 rewrite =
      DriverCall<PFN_cuGraphKernelNodeSetParams_v12000>("cuGraphKernelNodeSetParams", 12000);
  PFN_cuGraphLaunch_v10000 launch_graph = DriverCall<PFN_cuGraphLaunch_v10000>("cuGraphLaunch", 10000);
  PFN_cuLaunchKernel_v4000 launch = DriverCall<PFN_cuLaunchKernel_v4000>("cuLaunchKernel", 4000);
  PFN_cuEventRecord_v2000 record = DriverCall<PFN_cuEventRecord_v2000>("cuEventRecord", 2000);
  PFN_cuStreamWaitEvent_v3020 wait = DriverCall<PFN_cuStreamWaitEvent_v3020>("cuStreamWaitEvent", 3020);
  PFN_cuEventQuery_v2000 query = DriverCall<PFN_cuEventQuery_v2000>("cuEventQuery", 2000);

  static const DriverCalls& Get() {
    static const DriverCalls calls;
    return calls;
  }
};

// A graph, its tasks' nodes (none where it was captured) and the OR of the return codes of the calls that made it.
struct BuiltGraph {
  cudaGraph_t graph = nullptr;
  std::vector<cudaGraphNode_t> tasks{};
  cudaGraphNode_t first = nullptr;  // the one root, to be switched off
  int failed = 0;
};

__global__ void NothingKernel() {}

inline int AddNothing(cudaGraphNode_t* node, cudaGraph_t graph) {
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(&NothingKernel);
  params.gridDim = params.blockDim = dim3(1);
  return cudaGraphAddKernelNode(node, graph, nullptr, 0, &params);
}

template <class By, bool kOneRoot = false>
BuiltGraph BuildOfNodes(const RawWork& work) {
  BuiltGraph made;
  made.failed = cudaGraphCreate(&made.graph, 0);
  made.tasks.resize(work.tasks.size());
  cudaGraphNode_t first = nullptr;
  if (kOneRoot) made.failed |= AddNothing(&first, made.graph);
  made.first = first;
  const auto add_copy = [&](const RawCopy& copy, const cudaGraphNode_t* after, size_t count) {
    cudaGraphNode_t node = nullptr;
    made.failed |= cudaGraphAddMemcpyNode1D(&node, made.graph, after, count, copy.to, copy.from, copy.bytes, copy.kind);
    return node;
  };
  std::array<cudaGraphNode_t, 2> roots{};
  size_t root_count = 0;
  for (const RawCopy& copy : work.before) roots[root_count++] = add_copy(copy, &first, kOneRoot ? 1 : 0);
  if (kOneRoot && root_count == 0) roots[root_count++] = first;
  std::array<cudaGraphNode_t, kWidth> after;
  for (size_t t = 0; t < work.tasks.size(); ++t) {
    const RawTask& task = work.tasks[t];
    size_t count = 0;
    for (const int before : task.after) after[count++] = made.tasks[static_cast<size_t>(before)];
    const bool root = count == 0;
    made.failed |= root ? By::AddFirst(&made.tasks[t], made.graph, roots.data(), root_count, work, task)
                        : By::Add(&made.tasks[t], made.graph, after.data(), count, work, task);
  }
  const auto width = static_cast<size_t>(work.lanes);
  for (const RawCopy& copy : work.behind) add_copy(copy, made.tasks.data() + (made.tasks.size() - width), width);
  return made;
}

struct ByRuntimeApi {
  static constexpr const char* kName = "nodes by the runtime API";
  static BuiltGraph Build(const RawWork& work) { return BuildOfNodes<ByRuntimeApi>(work); }
  static int Add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                 const RawWork& work, const RawTask& task) {
    const cudaKernelNodeParams params = ParamsOf(work, task);
    return cudaGraphAddKernelNode(node, graph, after, count, &params);
  }
  // Behind copies, or the root.
  static constexpr auto AddFirst = &Add;
  static int Set(cudaGraphExec_t exec, cudaGraphNode_t node, const RawWork& work, const RawTask& task) {
    const cudaKernelNodeParams params = ParamsOf(work, task);
    return cudaGraphExecKernelNodeSetParams(exec, node, &params);
  }
  static int Rewrite(cudaGraphNode_t node, const RawWork& work, const RawTask& task) {
    const cudaKernelNodeParams params = ParamsOf(work, task);
    return cudaGraphKernelNodeSetParams(node, &params);
  }
  static int Launch(cudaGraphExec_t exec, cudaStream_t stream) { return cudaGraphLaunch(exec, stream); }
  static int Record(cudaEvent_t event, cudaStream_t stream) { return cudaEventRecord(event, stream); }
  static int Query(cudaEvent_t event) { return cudaEventQuery(event); }

 private:
  static cudaKernelNodeParams ParamsOf(const RawWork& work, const RawTask& task) {
    cudaKernelNodeParams params{};
    params.func = const_cast<void*>(work.stub);
    params.gridDim = dim3(1);
    params.blockDim = dim3(work.threads);
    params.kernelParams = const_cast<void**>(task.argv.data());
    return params;
  }
};

struct LaunchedByDriver {
  static int Launch(cudaGraphExec_t exec, cudaStream_t stream) { return DriverCalls::Get().launch_graph(exec, stream); }
  static int Record(cudaEvent_t event, cudaStream_t stream) { return DriverCalls::Get().record(event, stream); }
  static int Query(cudaEvent_t event) { return DriverCalls::Get().query(event); }
};

struct ByDriverApi : LaunchedByDriver {
  static constexpr const char* kName = "nodes by the driver API";
  static BuiltGraph Build(const RawWork& work) { return BuildOfNodes<ByDriverApi>(work); }
  static int Add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                 const RawWork& work, const RawTask& task) {
    const CUDA_KERNEL_NODE_PARAMS params = ParamsOf(work, task);
    return DriverCalls::Get().add(node, graph, after, count, &params);
  }
  static constexpr auto AddFirst = &Add;
  static int Set(cudaGraphExec_t exec, cudaGraphNode_t node, const RawWork& work, const RawTask& task) {
    const CUDA_KERNEL_NODE_PARAMS params = ParamsOf(work, task);
    return DriverCalls::Get().set(exec, node, &params);
  }
  static int Rewrite(cudaGraphNode_t node, const RawWork& work, const RawTask& task) {
    const CUDA_KERNEL_NODE_PARAMS params = ParamsOf(work, task);
    return DriverCalls::Get().rewrite(node, &params);
  }

 protected:
  static CUDA_KERNEL_NODE_PARAMS ParamsOf(const RawWork& work, const RawTask& task) {
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = work.function;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = work.threads;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = const_cast<void**>(task.argv.data());
    return params;
  }
};

struct ByDriverApiOneRoot : ByDriverApi {
  static constexpr const char* kName = "the same, one root";
  static BuiltGraph Build(const RawWork& work) { return BuildOfNodes<ByDriverApi, true>(work); }
};

struct ByProgrammaticEdges : ByDriverApi {
  static constexpr const char* kName = "programmatic edges";
  static BuiltGraph Build(const RawWork& work) { return BuildOfNodes<ByProgrammaticEdges>(work); }
  static int Add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                 const RawWork& work, const RawTask& task) {
    CUgraphEdgeData edge{};
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    std::array<CUgraphEdgeData, kWidth> edges;
    edges.fill(edge);
    const CUDA_KERNEL_NODE_PARAMS kernel = ParamsOf(work, task);
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    static_assert(sizeof(params.kernel) == sizeof(kernel), "the same fields");
    std::memcpy(&params.kernel, &kernel, sizeof(kernel));
    return DriverCalls::Get().add_any(node, graph, after, edges.data(), count, &params);
  }
};

struct ByProgrammaticEdgesOneRoot : ByProgrammaticEdges {
  static constexpr const char* kName = "programmatic edges, one root";
  static BuiltGraph Build(const RawWork& work) { return BuildOfNodes<ByProgrammaticEdges, true>(work); }
};

// A task is in the lane of its column; those that others wait for are recorded. Events serve two rows: when a row
// records, the waits for the row before the last have been captured.
struct ByCapture : LaunchedByDriver {
  static constexpr const char* kName = "captured";
  static BuiltGraph Build(const RawWork& work) {
    const DriverCalls& calls = DriverCalls::Get();
    const auto& lanes = work.streams;
    const auto width = static_cast<size_t>(work.lanes);
    BuiltGraph made;
    // Thread-local: Penstock's threads have calls of their own to make.
    made.failed = cudaStreamBeginCapture(lanes[0], cudaStreamCaptureModeThreadLocal);
    const auto copy = [&](const RawCopy& c) {
      made.failed |= cudaMemcpyAsync(c.to, c.from, c.bytes, c.kind, lanes[0]);
    };
    for (const RawCopy& c : work.before) copy(c);
    if (width > 1) made.failed |= calls.record(work.hub, lanes[0]);
    for (size_t i = 1; i < width; ++i) made.failed |= calls.wait(lanes[i], work.hub, 0);
    const auto event_of = [&](size_t t) { return work.events[t % (2 * width)]; };
    for (size_t t = 0; t < work.tasks.size(); ++t) {
      const size_t lane = t % width;
      for (const int before : work.tasks[t].after) {
        const auto b = static_cast<size_t>(before);
        if (b % width != lane) made.failed |= calls.wait(lanes[lane], event_of(b), 0);
      }
      made.failed |= calls.launch(work.function, 1, 1, 1, work.threads, 1, 1, 0, lanes[lane],
                                  const_cast<void**>(work.tasks[t].argv.data()), nullptr);
      if (width > 1) made.failed |= calls.record(event_of(t), lanes[lane]);
    }
    for (size_t i = 1; i < width; ++i) {
      made.failed |= calls.wait(lanes[0], event_of(work.tasks.size() - width + i), 0);
    }
    for (const RawCopy& c : work.behind) copy(c);
    made.failed |= cudaStreamEndCapture(lanes[0], &made.graph);
    return made;
  }
};

}  // namespace bench

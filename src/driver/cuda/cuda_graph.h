// The CUDA graphs that the handles of the driver interface stand for: a built or captured graph, and its executable.
//
// Kernels are kernel nodes of the driver API. Fills and batches are nodes of the library's own kernels, which can
// be given any shape later, unlike memset nodes. Copies are memcpy nodes. The contents of a captured graph are
// known only to CUDA.
//
// An edge between kernels is programmatic if the second awaits its predecessors itself and has no others: CUDA then
// launches it while the first is ending. Every kernel with such an incoming edge waits, so its successors are in order
// too, whatever kind of edge they have and whichever nodes between are disabled. Kernels with several such edges each
// begin later (8 x 125 of a stencil on an H100: 3 to 5 %).
//
// Ownership: an exec shares the graph it came from, since CUDA identifies the exec's nodes by those of the graph.
// Threads:   one thread at a time uses or destroys a graph or exec, with its device current.
// Errors:    CUDA's, by cuda_status.h. A call that fails changes nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/cuda/cuda_kernels.h"
#include "src/driver/cuda/driver_api.h"
#include "src/driver/node_op.h"

namespace penstock::driver {

// What nodes are made from: a device's context and the library's kernels.
struct NodeMaker {
  const DriverApi& api;
  const LibraryKernels& kernels;
  CUcontext context = nullptr;
  bool own_kernels_await = false;  // see LibraryKernels::Load
};

class CudaGraph {
 public:
  struct Node {
    cudaGraphNode_t native = nullptr;
    NodeShape shape{};
    bool child = false;  // or a host call: SetNode refuses both
    bool kernel = false;  // includes the library's own
  };

  static absl::StatusOr<std::unique_ptr<CudaGraph>> Create(int device);
  // Takes over the result of a capture on a stream of the device.
  static std::unique_ptr<CudaGraph> Adopt(int device, cudaGraph_t captured);

  int device() const { return device_; }
  cudaGraph_t native() const { return native_.get(); }
  absl::StatusOr<int32_t> Add(const NodeMaker& maker, std::span<const int32_t> after, const NodeOp& op, int priority);
  absl::StatusOr<int32_t> AddHost(std::span<const int32_t> after, const HostCall& call);
  absl::StatusOr<int32_t> AddChild(std::span<const int32_t> after, const CudaGraph& child);
  absl::StatusOr<int32_t> Count() const;

 private:
  friend class CudaExec;
  struct Destroy {
    void operator()(cudaGraph_t graph) const;
  };
  using Native = std::shared_ptr<std::remove_pointer_t<cudaGraph_t>>;

  CudaGraph(int device, cudaGraph_t native, bool captured)
      : device_(device), captured_(captured), native_(native, Destroy()) {}
  using Natives = absl::InlinedVector<cudaGraphNode_t, 8>;
  absl::StatusOr<Natives> NativesOf(std::span<const int32_t> after) const;
  cudaError_t AddKernel(Node& node, const NodeMaker& maker, std::span<const int32_t> after, const Natives& before,
                        const NodeOp& op);

  const int device_;
  const bool captured_;
  const Native native_;
  std::vector<Node> nodes_;  // empty for a capture
};

class CudaExec {
 public:
  static absl::StatusOr<std::unique_ptr<CudaExec>> Create(const CudaGraph& graph);
  ~CudaExec();
  CudaExec(const CudaExec&) = delete;
  CudaExec& operator=(const CudaExec&) = delete;

  int device() const { return device_; }
  cudaGraphExec_t native() const { return native_; }
  absl::Status Set(const NodeMaker& maker, int32_t node, const NodeOp& op);
  absl::Status Enable(int32_t node, bool enabled);
  absl::Status SetChild(int32_t node, const CudaGraph& child);

 private:
  CudaExec(const CudaGraph& graph, cudaGraphExec_t native)
      : device_(graph.device_),
        captured_(graph.captured_),
        graph_(graph.native_),
        nodes_(graph.nodes_),
        native_(native) {}
  absl::StatusOr<CudaGraph::Node> NodeOf(int32_t node) const;

  const int device_;
  const bool captured_;
  const CudaGraph::Native graph_;
  const std::vector<CudaGraph::Node> nodes_;
  const cudaGraphExec_t native_;
};

}  // namespace penstock::driver

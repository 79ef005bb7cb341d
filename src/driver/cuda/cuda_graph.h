// CUDA graphs behind the seam's handles: a graph that is built, and an exec of one.
//
// Kernels are nodes of the driver's; fills and batches are nodes of the library's own kernels, since those can be given
// any shape later, which memset nodes cannot. Copies are memcpy nodes.
//
// Ownership: an exec shares the graph it came from, whose nodes CUDA names what is set in it by.
// Threads:   one thread at a time uses a graph, or an exec, with its device current; so does who destroys it.
// Errors:    CUDA's, by cuda_status.h. A call that fails changes nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/cuda/cuda_kernels.h"
#include "src/driver/cuda/driver_api.h"
#include "src/driver/node_op.h"

namespace penstock::driver {

// What nodes are made with: a device's context, and the library's kernels.
struct NodeMaker {
  const DriverApi& api;
  const LibraryKernels& kernels;
  CUcontext context = nullptr;
};

class CudaGraph {
 public:
  struct Node {
    cudaGraphNode_t native = nullptr;
    NodeShape shape{};
  };

  static absl::StatusOr<std::unique_ptr<CudaGraph>> Create(int device);

  int device() const { return device_; }
  absl::StatusOr<int32_t> Add(const NodeMaker& maker, std::span<const int32_t> after, const NodeOp& op, int priority);

 private:
  friend class CudaExec;
  struct Destroy {
    void operator()(cudaGraph_t graph) const;
  };
  using Native = std::shared_ptr<std::remove_pointer_t<cudaGraph_t>>;

  CudaGraph(int device, Native native) : device_(device), native_(std::move(native)) {}

  const int device_;
  const Native native_;
  std::vector<Node> nodes_;
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

 private:
  CudaExec(const CudaGraph& graph, cudaGraphExec_t native)
      : device_(graph.device_), graph_(graph.native_), nodes_(graph.nodes_), native_(native) {}
  absl::Status CheckNumber(int32_t node) const;

  const int device_;
  const CudaGraph::Native graph_;
  const std::vector<CudaGraph::Node> nodes_;
  const cudaGraphExec_t native_;
};

}  // namespace penstock::driver

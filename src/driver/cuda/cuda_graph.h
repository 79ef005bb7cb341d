// The CUDA graphs that the handles of the driver interface stand for: a built or captured graph, and its executable.
//
// Kernels are kernel nodes of the driver API, and so are regions, by their resident kernels. Fills and batches are
// nodes of the library's own kernels, which can be given any shape later, unlike memset nodes. Copies are memcpy nodes.
// The contents of a captured graph are known only to CUDA.
//
// An edge between kernels is programmatic if the second awaits its predecessors itself and has no others: CUDA then
// launches it while the first is ending. Every kernel with such an incoming edge waits, so its successors are in order
// too, whatever kind of edge they have and whichever nodes between are disabled. Kernels with several such edges each
// begin later (8 x 125 of a stencil on an H100: 3 to 5 %). CUDA takes programmatic edges within a device only.
//
// A conditional node has full edges before and after it: CUDA refuses programmatic ones there.
//
// Ownership: an exec shares the graph it came from, since CUDA identifies the exec's nodes by those of the graph. The
//            bodies of conditional nodes belong to the graph they are in, CUDA's and ours, and share its life.
// Threads:   one thread at a time uses or destroys a graph or exec, with its device current; for a node of another
//            device, with that current.
// Errors:    CUDA's, by cuda_status.h. A call that fails changes nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
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
  int device;  // its number in the driver
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
    int device = 0;  // of an operation
    bool child = false;  // or a host call: SetNode refuses both
    bool conditional = false;
    bool loop = false;  // a conditional node that is one
    bool kernel = false;  // includes the library's own
    bool switched = false;  // by kernels
    bool region = false;
  };

  static absl::StatusOr<std::unique_ptr<CudaGraph>> Create(int device);
  // Takes over the result of a capture on a stream of the device.
  static std::unique_ptr<CudaGraph> Adopt(int device, cudaGraph_t captured);

  int device() const { return device_; }
  cudaGraph_t native() const { return native_.get(); }
  bool is_body() const { return kind_ == Kind::kBody; }
  // The maker is that of the node's device, which is current.
  absl::StatusOr<int32_t> Add(const NodeMaker& maker, std::span<const int32_t> after, const NodeOp& op,
                              NodePlace place);
  // The device of a node with this place. Errors: of bodies, as in driver.h.
  absl::StatusOr<int> DeviceOf(NodePlace place, const NodeOp& op) const;
  absl::StatusOr<int32_t> AddHost(std::span<const int32_t> after, const HostCall& call);
  absl::StatusOr<int32_t> AddChild(const DriverApi& api, std::span<const int32_t> after, const CudaGraph& child);
  absl::StatusOr<ConditionalHandle> CreateConditional();
  absl::StatusOr<ConditionalNode> AddConditional(std::span<const int32_t> after, ConditionalHandle handle,
                                                 ConditionalKind kind, int32_t bodies);
  absl::StatusOr<NodeSwitch> AddSwitch(int32_t node);
  absl::StatusOr<int32_t> Count() const;

 private:
  friend class CudaExec;
  struct Destroy {
    void operator()(cudaGraph_t graph) const;
  };
  using Native = std::shared_ptr<std::remove_pointer_t<cudaGraph_t>>;

  enum class Kind : uint8_t { kBuilt, kCaptured, kBody };
  CudaGraph(int device, Native native, Kind kind) : device_(device), kind_(kind), native_(std::move(native)) {}
  using Natives = absl::InlinedVector<cudaGraphNode_t, 8>;
  absl::StatusOr<Natives> NativesOf(std::span<const int32_t> after) const;
  cudaError_t AddKernel(Node& node, const NodeMaker& maker, std::span<const int32_t> after, const Natives& before,
                        const NodeOp& op);

  static absl::Status CheckChild(const DriverApi& api, const CudaGraph& child, int device, bool body);
  bool captured() const { return kind_ == Kind::kCaptured; }
  bool has_switch() const;

  const int device_;
  const Kind kind_;
  const Native native_;  // for a body, that of its graph keeps it
  std::vector<Node> nodes_;  // empty for a capture
  std::vector<cudaGraphConditionalHandle> unused_;  // handles without a node
  std::vector<std::unique_ptr<CudaGraph>> bodies_;
  bool instantiated_ = false;
};

class CudaExec {
 public:
  static absl::StatusOr<std::unique_ptr<CudaExec>> Create(CudaGraph& graph);
  // The nodes of a body in this exec. `body` is only compared.
  absl::StatusOr<std::unique_ptr<CudaExec>> BodyOf(const CudaGraph* body) const;
  CudaExec(const CudaExec&) = delete;
  CudaExec& operator=(const CudaExec&) = delete;

  int device() const { return device_; }
  // Null for a body, which cannot be launched.
  cudaGraphExec_t native() const { return kind_ == CudaGraph::Kind::kBody ? nullptr : native_.get(); }
  bool has_loop() const { return has_loop_; }  // in itself or in a body
  int32_t regions() const { return regions_; }  // the same
  // Whether it must be uploaded before it is launched: CUDA asks for that where kernels switch nodes, after each change
  // of such a node.
  bool must_upload() const { return *must_upload_; }
  void Uploaded() { *must_upload_ = false; }
  // The device of a node, with which Set is called: its maker, with the device current.
  absl::StatusOr<int> DeviceOf(int32_t node) const;
  absl::Status Set(const NodeMaker& maker, int32_t node, const NodeOp& op);
  absl::Status Enable(int32_t node, bool enabled);
  absl::Status SetChild(const DriverApi& api, int32_t node, const CudaGraph& child);

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t exec) const;
  };
  using Native = std::shared_ptr<std::remove_pointer_t<cudaGraphExec_t>>;
  // The nodes of a body when the graph was instantiated.
  struct Body {
    const CudaGraph* of = nullptr;
    std::vector<CudaGraph::Node> nodes{};
  };
  CudaExec(const CudaGraph& graph, Native native)
      : device_(graph.device_),
        kind_(graph.kind_),
        graph_(graph.native_),
        nodes_(graph.nodes_),
        native_(std::move(native)) {
    AddBodies(graph);
  }
  CudaExec(const CudaExec& whole, const Body& body)
      : device_(whole.device_),
        kind_(CudaGraph::Kind::kBody),
        graph_(whole.graph_),
        nodes_(body.nodes),
        must_upload_(whole.must_upload_),
        native_(whole.native_) {}
  void AddBodies(const CudaGraph& graph);
  absl::Status UploadNow();
  absl::StatusOr<CudaGraph::Node> NodeOf(int32_t node) const;
  void HasChanged(const CudaGraph::Node& node) { *must_upload_ = *must_upload_ || node.switched; }

  const int device_;
  const CudaGraph::Kind kind_;
  const CudaGraph::Native graph_;
  const std::vector<CudaGraph::Node> nodes_;
  std::vector<Body> bodies_;  // nested ones too
  bool has_loop_ = false;
  int32_t regions_ = 0;
  const std::shared_ptr<bool> must_upload_ = std::make_shared<bool>(false);  // shared as `native_` is
  const Native native_;  // shared with what BodyOf has returned
};

}  // namespace penstock::driver

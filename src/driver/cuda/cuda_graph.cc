#include "src/driver/cuda/cuda_graph.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "penstock/status_macros.h"
#include "src/driver/conditional_rules.h"
#include "src/driver/copy_box.h"
#include "src/driver/cuda/cuda_body.h"
#include "src/driver/cuda/cuda_copy.h"
#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver {
namespace {

absl::Status NoSuchNode(int32_t node, size_t count) {
  return absl::InvalidArgumentError("the graph has no node " + std::to_string(node) + "; its " + std::to_string(count) +
                                    " nodes count from 0");
}

dim3 Dim(const std::array<uint32_t, 3>& of) { return {of[0], of[1], of[2]}; }

CUDA_KERNEL_NODE_PARAMS ParamsOf(CUcontext context, const void* kernel, dim3 grid, dim3 block, uint32_t shared_bytes,
                                 void** argv) {
  return {.func = nullptr,
          .gridDimX = grid.x,
          .gridDimY = grid.y,
          .gridDimZ = grid.z,
          .blockDimX = block.x,
          .blockDimY = block.y,
          .blockDimZ = block.z,
          .sharedMemBytes = shared_bytes,
          .kernelParams = argv,
          .extra = nullptr,
          .kern = static_cast<CUkernel>(const_cast<void*>(kernel)),
          .ctx = context};
}

CUgraphNodeParams NodeOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.kernel = {.func = params.func,
                 .gridDimX = params.gridDimX,
                 .gridDimY = params.gridDimY,
                 .gridDimZ = params.gridDimZ,
                 .blockDimX = params.blockDimX,
                 .blockDimY = params.blockDimY,
                 .blockDimZ = params.blockDimZ,
                 .sharedMemBytes = params.sharedMemBytes,
                 .kernelParams = params.kernelParams,
                 .extra = params.extra,
                 .kern = params.kern,
                 .ctx = params.ctx};
  return node;
}

bool Awaits(const NodeMaker& maker, const NodeOp& op) {
  if (const auto* const region = std::get_if<const RegionOp*>(&op)) return (*region)->resident->awaits;
  const auto* const kernel = std::get_if<const KernelOp*>(&op);
  return kernel != nullptr ? (*kernel)->awaits : maker.own_kernels_await;
}

absl::Status CheckResident(const NodeOp& op) {
  const auto* const region = std::get_if<const RegionOp*>(&op);
  if (region == nullptr || (*region)->resident != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("a region on a CUDA device has no resident kernel; make its operations nodes");
}

// Passes the kernel of an operation, the caller's or the library's, to `use` in CUDA's form.
template <class Use>
cudaError_t WithKernel(const NodeMaker& maker, const NodeOp& op, Use use) {
  const auto library = [&](cudaKernel_t kernel, auto launch) {
    void* argv[] = {&launch.args};
    return use(ParamsOf(maker.context, static_cast<const void*>(kernel), launch.grid, launch.block, 0, argv));
  };
  if (const auto* const batch = std::get_if<const BatchOp*>(&op)) {
    return AsRuntime(library(maker.kernels.gather, LaunchOf(**batch, (*batch)->size)));
  }
  if (const auto* const fill = std::get_if<const FillOp*>(&op)) {
    return AsRuntime(library(maker.kernels.pattern_fill, LaunchOf(**fill)));
  }
  const auto* const region = std::get_if<const RegionOp*>(&op);
  const KernelOp& kernel = region != nullptr ? *(*region)->resident : *std::get<const KernelOp*>(op);
  return AsRuntime(use(ParamsOf(maker.context, kernel.kernel, Dim(kernel.grid), Dim(kernel.block), kernel.shared_bytes,
                                const_cast<void**>(kernel.argv))));
}

cudaError_t AddCopy(cudaGraphNode_t* node, cudaGraph_t graph, std::span<const cudaGraphNode_t> after,
                    const CopyOp& op) {
  const CopyOp least = Collapse(op);
  if (least.height == 1 && least.depth == 1) {
    return cudaGraphAddMemcpyNode1D(node, graph, after.data(), after.size(), least.dst, least.src, least.width,
                                    KindOf(least.kind));
  }
  const cudaMemcpy3DParms box = BoxOf(least);
  return cudaGraphAddMemcpyNode(node, graph, after.data(), after.size(), &box);
}

cudaGraphConditionalNodeType NativeOf(ConditionalKind kind) {
  switch (kind) {
    case ConditionalKind::kIf: return cudaGraphCondTypeIf;
    case ConditionalKind::kWhile: return cudaGraphCondTypeWhile;
    case ConditionalKind::kSwitch: break;
  }
  return cudaGraphCondTypeSwitch;
}

// CUDA refuses node priorities outside the device's range, while it clamps those of streams.
absl::Status SetPriority(cudaGraphNode_t node, int priority) {
  int least = 0, greatest = 0;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking which priorities the device has"));
  cudaLaunchAttributeValue value{};
  value.priority = std::clamp(priority, greatest, least);
  return ToStatus(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, &value),
                  "giving a graph's node a priority");
}

}  // namespace

void CudaGraph::Destroy::operator()(cudaGraph_t graph) const {
  if (!CudaIsLost()) Forget(cudaGraphDestroy(graph));
}

absl::StatusOr<std::unique_ptr<CudaGraph>> CudaGraph::Create(int device) {
  cudaGraph_t native = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGraphCreate(&native, 0), "creating a graph"));
  return std::unique_ptr<CudaGraph>(new CudaGraph(device, Native(native, Destroy()), Kind::kBuilt));
}

std::unique_ptr<CudaGraph> CudaGraph::Adopt(int device, cudaGraph_t captured) {
  return std::unique_ptr<CudaGraph>(new CudaGraph(device, Native(captured, Destroy()), Kind::kCaptured));
}

absl::StatusOr<CudaGraph::Natives> CudaGraph::NativesOf(std::span<const int32_t> after) const {
  if (captured()) return NodesOfACapture();
  Natives natives;
  for (const int32_t n : after) {
    if (n < 0 || static_cast<size_t>(n) >= nodes_.size()) return NoSuchNode(n, nodes_.size());
    natives.push_back(nodes_[static_cast<size_t>(n)].native);
  }
  return natives;
}

absl::StatusOr<int32_t> CudaGraph::Add(const NodeMaker& maker, std::span<const int32_t> after, const NodeOp& op,
                                       NodePlace place) {
  PENSTOCK_RETURN_IF_ERROR(CheckNode(op));
  PENSTOCK_RETURN_IF_ERROR(CheckResident(op));
  PENSTOCK_ASSIGN_OR_RETURN(const Natives before, NativesOf(after));
  Node node{.shape = ShapeOf(op), .device = maker.device, .region = std::holds_alternative<const RegionOp*>(op)};
  cudaError_t code = cudaSuccess;
  if (const auto* const copy = std::get_if<const CopyOp*>(&op)) {
    code = AddCopy(&node.native, native_.get(), before, **copy);
  } else {
    code = AddKernel(node, maker, after, before, op);
    if (code == cudaSuccess && place.priority != 0) {
      if (absl::Status status = SetPriority(node.native, place.priority); !status.ok()) {
        Forget(cudaGraphDestroyNode(node.native));
        return status;
      }
    }
  }
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, "adding a node to a graph"));
  nodes_.push_back(node);
  return static_cast<int32_t>(nodes_.size()) - 1;
}

cudaError_t CudaGraph::AddKernel(Node& node, const NodeMaker& maker, std::span<const int32_t> after,
                                 const Natives& before, const NodeOp& op) {
  node.kernel = true;
  absl::InlinedVector<CUgraphEdgeData, 8> edges(before.size(), CUgraphEdgeData{});
  const auto is_kernel_here = [&](int32_t n) {
    const Node& before_it = nodes_[static_cast<size_t>(n)];
    return before_it.kernel && before_it.device == maker.device;
  };
  if (after.size() == 1 && is_kernel_here(after[0]) && Awaits(maker, op)) {
    edges[0].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edges[0].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  }
  return WithKernel(maker, op, [&](const CUDA_KERNEL_NODE_PARAMS& params) {
    CUgraphNodeParams native = NodeOf(params);
    return maker.api.graph_add_node(&node.native, native_.get(), before.data(), edges.data(), before.size(), &native);
  });
}

absl::StatusOr<int> CudaGraph::DeviceOf(NodePlace place, const NodeOp& op) const {
  const int device = place.device < 0 ? device_ : place.device;
  if (!is_body()) return device;
  PENSTOCK_RETURN_IF_ERROR(CheckDeviceInABody(device_, device));
  if (IsPeerCopy(op)) return PeerCopyInABody();
  return device;
}

absl::StatusOr<int32_t> CudaGraph::AddHost(std::span<const int32_t> after, const HostCall& call) {
  if (is_body()) return HostCallInABody();
  PENSTOCK_ASSIGN_OR_RETURN(const Natives before, NativesOf(after));
  const cudaHostNodeParams params{.fn = call.call, .userData = call.context};
  Node node{.device = device_, .child = true};
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaGraphAddHostNode(&node.native, native_.get(), before.data(), before.size(), &params),
               "adding a call of the host to a graph"));
  nodes_.push_back(node);
  return static_cast<int32_t>(nodes_.size()) - 1;
}

// `device`, `body`: of the graph that shall have the child.
absl::Status CudaGraph::CheckChild(const DriverApi& api, const CudaGraph& child, int device, bool body) {
  if (body) {
    PENSTOCK_RETURN_IF_ERROR(CheckDeviceInABody(device, child.device_));
    for (const Node& node : child.nodes_) PENSTOCK_RETURN_IF_ERROR(CheckDeviceInABody(device, node.device));
  }
  if (child.is_body()) return BodyIsNoChild();
  if (!child.bodies_.empty()) return ConditionalInAChild();
  if (child.has_switch()) return SwitchInAChild();
  return body ? CheckMayBeInABody(api, child.native_.get()) : absl::OkStatus();
}

absl::StatusOr<int32_t> CudaGraph::AddChild(const DriverApi& api, std::span<const int32_t> after,
                                            const CudaGraph& child) {
  if (this == &child) return ChildOfItself();
  PENSTOCK_RETURN_IF_ERROR(CheckChild(api, child, device_, is_body()));
  PENSTOCK_ASSIGN_OR_RETURN(const Natives before, NativesOf(after));
  Node node{.device = child.device_, .child = true};
  PENSTOCK_RETURN_IF_ERROR(ToRefusal(
      cudaGraphAddChildGraphNode(&node.native, native_.get(), before.data(), before.size(), child.native_.get()),
      "making a graph a child of another"));
  nodes_.push_back(node);
  return static_cast<int32_t>(nodes_.size()) - 1;
}

absl::StatusOr<int32_t> CudaGraph::Count() const {
  size_t count = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGraphGetNodes(native_.get(), nullptr, &count), "counting a graph's nodes"));
  return static_cast<int32_t>(count);
}

absl::StatusOr<ConditionalHandle> CudaGraph::CreateConditional() {
  if (captured()) return NodesOfACapture();
  cudaGraphConditionalHandle handle = 0;
  // Without a default, which would count once a launch, and so not for a loop that is begun again by one around it.
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGraphConditionalHandleCreate(&handle, native_.get(), 0, 0),
                                    "making a handle for a conditional node"));
  unused_.push_back(handle);
  return ConditionalHandle{handle};
}

absl::StatusOr<ConditionalNode> CudaGraph::AddConditional(std::span<const int32_t> after, ConditionalHandle handle,
                                                          ConditionalKind kind, int32_t bodies) {
  PENSTOCK_RETURN_IF_ERROR(CheckBodies(kind, bodies));
  PENSTOCK_ASSIGN_OR_RETURN(const Natives before, NativesOf(after));
  const auto unused = std::find(unused_.begin(), unused_.end(), handle.bits);
  if (unused == unused_.end()) return NoSuchHandle();
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle.bits;
  params.conditional.type = NativeOf(kind);
  params.conditional.size = static_cast<unsigned int>(bodies);
  Node node{.device = device_, .conditional = true, .loop = kind == ConditionalKind::kWhile};
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaGraphAddNode(&node.native, native_.get(), before.data(), nullptr, before.size(), &params),
               "adding a conditional node to a graph"));
  unused_.erase(unused);
  nodes_.push_back(node);
  ConditionalNode added{.number = static_cast<int32_t>(nodes_.size()) - 1, .bodies = {}};
  for (int32_t i = 0; i < bodies; ++i) {
    const Native body(native_, params.conditional.phGraph_out[i]);
    bodies_.push_back(std::unique_ptr<CudaGraph>(new CudaGraph(device_, body, Kind::kBody)));
    added.bodies.push_back(Graph{reinterpret_cast<uint64_t>(bodies_.back().get())});
  }
  return added;
}

absl::StatusOr<NodeSwitch> CudaGraph::AddSwitch(int32_t node) {
  PENSTOCK_ASSIGN_OR_RETURN(const Natives natives, NativesOf({&node, 1}));
  Node& of = nodes_[static_cast<size_t>(node)];
  if (!of.kernel) return NodeHasNoSwitch(node);
  if (of.switched) return SwitchedBefore(node);
  cudaLaunchAttributeValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaGraphKernelNodeSetAttribute(natives[0], cudaLaunchAttributeDeviceUpdatableKernelNode, &value),
               "letting kernels switch a node of a graph"));
  of.switched = true;
  return NodeSwitch{reinterpret_cast<uint64_t>(value.deviceUpdatableKernelNode.devNode)};
}

bool CudaGraph::has_switch() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.switched; });
}

// --- execs ---

absl::StatusOr<std::unique_ptr<CudaExec>> CudaExec::Create(CudaGraph& graph) {
  if (graph.is_body()) return BodyIsNoGraph();
  const bool conditional = !graph.bodies_.empty();
  if ((conditional || graph.has_switch()) && graph.instantiated_) return InstantiatedBefore();
  cudaGraphExec_t native = nullptr;
  // Otherwise nodes would have the priority of the launching stream.
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaGraphInstantiate(&native, graph.native_.get(), cudaGraphInstantiateFlagUseNodePriority),
               "instantiating a graph of " + std::to_string(graph.nodes_.size()) + " nodes" +
                   (conditional ? ", some conditional" : "")));
  graph.instantiated_ = true;
  std::unique_ptr<CudaExec> exec(new CudaExec(graph, Native(native, Destroy())));
  if (exec->must_upload()) PENSTOCK_RETURN_IF_ERROR(exec->UploadNow());
  return exec;
}

// Nodes that kernels switch, and that are set before the exec has been uploaded once, begin 0.2 us later ever after
// (driver 580, a chain of 11 kernels).
absl::Status CudaExec::UploadNow() {
  cudaStream_t stream = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream"));
  cudaError_t code = cudaGraphUpload(native_.get(), stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  Forget(cudaStreamDestroy(stream));
  if (code == cudaSuccess) Uploaded();
  return ToStatus(code, "uploading a graph");
}

void CudaExec::Destroy::operator()(cudaGraphExec_t exec) const {
  if (!CudaIsLost()) Forget(cudaGraphExecDestroy(exec));
}

void CudaExec::AddBodies(const CudaGraph& graph) {
  for (const CudaGraph::Node& node : graph.nodes_) {
    has_loop_ = has_loop_ || node.loop;
    regions_ += node.region ? 1 : 0;
    HasChanged(node);
  }
  for (const std::unique_ptr<CudaGraph>& body : graph.bodies_) {
    bodies_.push_back({body.get(), body->nodes_});
    AddBodies(*body);
  }
}

absl::StatusOr<std::unique_ptr<CudaExec>> CudaExec::BodyOf(const CudaGraph* body) const {
  const auto found = std::find_if(bodies_.begin(), bodies_.end(), [&](const Body& of) { return of.of == body; });
  if (found == bodies_.end()) return NoSuchBody();
  return std::unique_ptr<CudaExec>(new CudaExec(*this, *found));
}

absl::StatusOr<CudaGraph::Node> CudaExec::NodeOf(int32_t node) const {
  if (kind_ == CudaGraph::Kind::kCaptured) return NodesOfACapture();
  if (node < 0 || static_cast<size_t>(node) >= nodes_.size()) return NoSuchNode(node, nodes_.size());
  return nodes_[static_cast<size_t>(node)];
}

absl::StatusOr<int> CudaExec::DeviceOf(int32_t node) const {
  PENSTOCK_ASSIGN_OR_RETURN(const CudaGraph::Node of, NodeOf(node));
  return of.device;
}

absl::Status CudaExec::Set(const NodeMaker& maker, int32_t node, const NodeOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const CudaGraph::Node of, NodeOf(node));
  if (of.child) return NodeIsAChild(node);
  if (of.conditional) return NodeIsConditional(node);
  PENSTOCK_RETURN_IF_ERROR(CheckNode(op));
  PENSTOCK_RETURN_IF_ERROR(CheckResident(op));
  PENSTOCK_RETURN_IF_ERROR(CheckReplacement(of.shape, ShapeOf(op)));
  HasChanged(of);
  cudaError_t code = cudaSuccess;
  if (const auto* const copy = std::get_if<const CopyOp*>(&op)) {
    const CopyOp line = Collapse(**copy);
    code =
        cudaGraphExecMemcpyNodeSetParams1D(native_.get(), of.native, line.dst, line.src, line.width, KindOf(line.kind));
  } else {
    code = WithKernel(maker, op, [&](const CUDA_KERNEL_NODE_PARAMS& params) {
      return maker.api.exec_set_kernel(native_.get(), of.native, &params);
    });
  }
  return ToStatus(code, "giving a node of a graph other parameters");
}

absl::Status CudaExec::Enable(int32_t node, bool enabled) {
  PENSTOCK_ASSIGN_OR_RETURN(const CudaGraph::Node of, NodeOf(node));
  if (of.child) return NodeIsAChild(node);
  if (of.conditional) return NodeIsConditional(node);
  HasChanged(of);
  return ToStatus(cudaGraphNodeSetEnabled(native_.get(), of.native, enabled ? 1 : 0),
                  enabled ? "switching a node of a graph on" : "switching a node of a graph off");
}

absl::Status CudaExec::SetChild(const DriverApi& api, int32_t node, const CudaGraph& child) {
  PENSTOCK_ASSIGN_OR_RETURN(const CudaGraph::Node of, NodeOf(node));
  if (!of.child) return NodeIsNoChild(node);
  PENSTOCK_RETURN_IF_ERROR(CudaGraph::CheckChild(api, child, device_, kind_ == CudaGraph::Kind::kBody));
  return ToRefusal(cudaGraphExecChildGraphNodeSetParams(native_.get(), of.native, child.native_.get()),
                   "giving a child of a graph another graph");
}

}  // namespace penstock::driver

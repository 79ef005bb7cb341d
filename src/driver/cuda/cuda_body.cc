#include "src/driver/cuda/cuda_body.h"

#include <string>
#include <vector>

#include "penstock/status_macros.h"
#include "src/driver/conditional_rules.h"
#include "src/driver/cuda/cuda_pointer.h"
#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver {
namespace {

absl::StatusOr<std::vector<cudaGraphNode_t>> NodesOf(cudaGraph_t graph) {
  size_t count = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGraphGetNodes(graph, nullptr, &count), "counting a child's nodes"));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count == 0) return nodes;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGraphGetNodes(graph, nodes.data(), &count), "listing a child's nodes"));
  return nodes;
}

// The numbers are those of the driver's CUgraphNodeType: the runtime's enumeration has gaps.
std::string NameOfKind(int kind) {
  switch (kind) {
    case CU_GRAPH_NODE_TYPE_HOST: return "a call of the host";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "a wait for an event";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "a record of an event";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: return "a signal to an external semaphore";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return "a wait for an external semaphore";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "an allocation of memory";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "a release of memory";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "a batch of memory operations (cuStreamBatchMemOp)";
    default: return "a node of kind " + std::to_string(kind) + " (CUgraphNodeType)";
  }
}

// Whether CUDA knows an address as neither device nor pinned memory. Managed memory, which InspectPointer counts as
// pageable, may be copied in a body.
bool IsPageable(const DriverApi& api, const void* memory) {
  if (memory == nullptr) return false;
  unsigned int type = 0;
  CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* value = &type;
  const CUresult code = api.pointer_attributes(1, &name, &value, reinterpret_cast<CUdeviceptr>(memory));
  return code == CUDA_SUCCESS && type == 0;
}

// In a body, a copy from another device to its own breaks the context (driver 580: error 719); the other way works.
bool IsOfAnotherDevice(const DriverApi& api, const void* memory) {
  int current = -1;
  const absl::StatusOr<PointerInfo> info = InspectPointer(api, memory);
  if (!info.ok() || info->kind != PointerInfo::Kind::kDevice || cudaGetDevice(&current) != cudaSuccess) return false;
  return info->device != current;
}

// A copy that CUDA does not describe, such as one of another context, is left to CUDA.
absl::Status CheckCopy(const DriverApi& api, cudaGraphNode_t node) {
  cudaMemcpy3DParms params{};
  if (const cudaError_t code = cudaGraphMemcpyNodeGetParams(node, &params); code != cudaSuccess) {
    Forget(code);
    return absl::OkStatus();
  }
  const void* const source = params.srcPtr.ptr;
  if (IsPageable(api, source) || IsPageable(api, params.dstPtr.ptr)) {
    return ChildCannotBeInABody("a copy of pageable memory");
  }
  if (source != nullptr && IsOfAnotherDevice(api, source)) {
    return ChildCannotBeInABody("a copy of another device's memory");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMayBeInABody(const DriverApi& api, cudaGraph_t child) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<cudaGraphNode_t> nodes, NodesOf(child));
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType kind = cudaGraphNodeTypeEmpty;
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGraphNodeGetType(node, &kind), "asking for the kind of a child's node"));
    switch (static_cast<int>(kind)) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
      case CU_GRAPH_NODE_TYPE_MEMSET:
      case CU_GRAPH_NODE_TYPE_EMPTY: break;
      case CU_GRAPH_NODE_TYPE_MEMCPY: PENSTOCK_RETURN_IF_ERROR(CheckCopy(api, node)); break;
      case CU_GRAPH_NODE_TYPE_GRAPH: {
        cudaGraph_t nested = nullptr;
        PENSTOCK_RETURN_IF_ERROR(
            ToStatus(cudaGraphChildGraphNodeGetGraph(node, &nested), "asking for the graph of a child's child"));
        PENSTOCK_RETURN_IF_ERROR(CheckMayBeInABody(api, nested));
        break;
      }
      case CU_GRAPH_NODE_TYPE_CONDITIONAL: return ConditionalInAChild();
      default: return ChildCannotBeInABody(NameOfKind(static_cast<int>(kind)));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::driver

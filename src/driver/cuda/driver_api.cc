#include "src/driver/cuda/driver_api.h"

#include <string>

#include "penstock/status_macros.h"
#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver {
namespace {

// `version`: the CUDA release in which the function has this signature.
template <class Function>
absl::Status Find(const char* symbol, unsigned int version, Function* function) {
  void* found = nullptr;
  const cudaError_t code = cudaGetDriverEntryPointByVersion(symbol, &found, version, cudaEnableDefault, nullptr);
  if (code != cudaSuccess) return StatusOfFailure(code, std::string("looking up ") + symbol);
  if (found == nullptr) {
    return absl::UnavailableError(std::string("the CUDA driver has no ") + symbol +
                                  "; it is too old for this library; install release 580 or newer");
  }
  *function = reinterpret_cast<Function>(found);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DriverApi> DriverApi::Load() {
  DriverApi api;
  PENSTOCK_RETURN_IF_ERROR(Find("cuCtxGetCurrent", 4000, &api.context_get_current));
  PENSTOCK_RETURN_IF_ERROR(Find("cuCtxPushCurrent", 4000, &api.context_push));
  PENSTOCK_RETURN_IF_ERROR(Find("cuCtxPopCurrent", 4000, &api.context_pop));
  PENSTOCK_RETURN_IF_ERROR(Find("cuDeviceGet", 2000, &api.device_get));
  PENSTOCK_RETURN_IF_ERROR(Find("cuDevicePrimaryCtxRetain", 7000, &api.primary_context_retain));
  PENSTOCK_RETURN_IF_ERROR(Find("cuDevicePrimaryCtxRelease", 11000, &api.primary_context_release));
  PENSTOCK_RETURN_IF_ERROR(Find("cuLaunchKernelEx", 11060, &api.launch_kernel));
  PENSTOCK_RETURN_IF_ERROR(Find("cuKernelGetName", 12030, &api.kernel_get_name));
  PENSTOCK_RETURN_IF_ERROR(Find("cuKernelGetLibrary", 12050, &api.kernel_get_library));
  PENSTOCK_RETURN_IF_ERROR(Find("cuKernelGetParamInfo", 12040, &api.kernel_get_param_info));
  PENSTOCK_RETURN_IF_ERROR(Find("cuLibraryGetGlobal", 12000, &api.library_get_global));
  PENSTOCK_RETURN_IF_ERROR(Find("cuLibraryLoadData", 12000, &api.library_load_data));
  PENSTOCK_RETURN_IF_ERROR(Find("cuLibraryGetKernel", 12000, &api.library_get_kernel));
  PENSTOCK_RETURN_IF_ERROR(Find("cuLibraryUnload", 12000, &api.library_unload));
  PENSTOCK_RETURN_IF_ERROR(Find("cuOccupancyMaxPotentialBlockSize", 6050, &api.occupancy_block_size));
  PENSTOCK_RETURN_IF_ERROR(Find("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, &api.occupancy_blocks));
  PENSTOCK_RETURN_IF_ERROR(Find("cuEventRecord", 2000, &api.event_record));
  PENSTOCK_RETURN_IF_ERROR(Find("cuStreamWaitEvent", 3020, &api.stream_wait_event));
  PENSTOCK_RETURN_IF_ERROR(Find("cuEventQuery", 2000, &api.event_query));
  PENSTOCK_RETURN_IF_ERROR(Find("cuEventElapsedTime", 2000, &api.event_elapsed));
  PENSTOCK_RETURN_IF_ERROR(Find("cuEventDestroy", 4000, &api.event_destroy));
  PENSTOCK_RETURN_IF_ERROR(Find("cuStreamDestroy", 4000, &api.stream_destroy));
  PENSTOCK_RETURN_IF_ERROR(Find("cuStreamIsCapturing", 10000, &api.stream_is_capturing));
  PENSTOCK_RETURN_IF_ERROR(Find("cuStreamGetDevice", 12080, &api.stream_get_device));
  PENSTOCK_RETURN_IF_ERROR(Find("cuThreadExchangeStreamCaptureMode", 10010, &api.exchange_capture_mode));
  PENSTOCK_RETURN_IF_ERROR(Find("cuPointerGetAttributes", 7000, &api.pointer_attributes));
  PENSTOCK_RETURN_IF_ERROR(Find("cuGraphAddNode", 12030, &api.graph_add_node));
  PENSTOCK_RETURN_IF_ERROR(Find("cuGraphExecKernelNodeSetParams", 12000, &api.exec_set_kernel));
  PENSTOCK_RETURN_IF_ERROR(Find("cuGraphLaunch", 10000, &api.graph_launch));
  PENSTOCK_RETURN_IF_ERROR(Find("cuLogsCurrent", 12090, &api.logs_current));
  PENSTOCK_RETURN_IF_ERROR(Find("cuLogsDumpToMemory", 12090, &api.logs_dump_to_memory));
  return api;
}

}  // namespace penstock::driver

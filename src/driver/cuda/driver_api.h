// DriverApi: the few calls that go to the CUDA driver itself, not through the runtime API. They are: contexts, which
// the runtime API does not expose; the calls of the submit path, which are 3 % (launch) to 20 % (record, wait) cheaper
// and leave the runtime API's last error alone; kernel nodes, whose kernels are driver handles, and the names,
// parameters, variables and occupancy of such kernels; images of device code that the application has made; calls of
// threads without a current context, to which the runtime API would give one on device 0; pointer attributes, for which
// the runtime API gives no range; and the driver's log.
//
// The runtime API, which opened the driver, provides the entry points: the library does not link libcuda.so.
//
// Threads:   thread-safe after Load.
// Errors:    Load returns Unavailable if the driver lacks an entry point. CUresult and cudaError_t use the same
//            numbers; calls here return the latter.
#pragma once

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "absl/status/statusor.h"

namespace penstock::driver {

struct DriverApi {
  PFN_cuCtxGetCurrent_v4000 context_get_current = nullptr;
  PFN_cuCtxPushCurrent_v4000 context_push = nullptr;
  PFN_cuCtxPopCurrent_v4000 context_pop = nullptr;
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDevicePrimaryCtxRetain_v7000 primary_context_retain = nullptr;
  PFN_cuDevicePrimaryCtxRelease_v11000 primary_context_release = nullptr;
  PFN_cuLaunchKernelEx_v11060 launch_kernel = nullptr;
  PFN_cuKernelGetName_v12030 kernel_get_name = nullptr;
  PFN_cuKernelGetLibrary_v12050 kernel_get_library = nullptr;
  PFN_cuKernelGetParamInfo_v12040 kernel_get_param_info = nullptr;
  PFN_cuLibraryGetGlobal_v12000 library_get_global = nullptr;
  PFN_cuLibraryLoadData_v12000 library_load_data = nullptr;
  PFN_cuLibraryGetKernel_v12000 library_get_kernel = nullptr;
  PFN_cuLibraryUnload_v12000 library_unload = nullptr;
  PFN_cuOccupancyMaxPotentialBlockSize_v6050 occupancy_block_size = nullptr;
  PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050 occupancy_blocks = nullptr;
  PFN_cuEventRecord_v2000 event_record = nullptr;
  PFN_cuStreamWaitEvent_v3020 stream_wait_event = nullptr;
  PFN_cuEventQuery_v2000 event_query = nullptr;
  PFN_cuEventElapsedTime_v2000 event_elapsed = nullptr;
  PFN_cuEventDestroy_v4000 event_destroy = nullptr;
  PFN_cuStreamDestroy_v4000 stream_destroy = nullptr;
  PFN_cuStreamIsCapturing_v10000 stream_is_capturing = nullptr;
  PFN_cuStreamGetDevice_v12080 stream_get_device = nullptr;
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode = nullptr;
  PFN_cuPointerGetAttributes_v7000 pointer_attributes = nullptr;
  PFN_cuGraphAddNode_v12030 graph_add_node = nullptr;
  PFN_cuGraphExecKernelNodeSetParams_v12000 exec_set_kernel = nullptr;
  PFN_cuGraphLaunch_v10000 graph_launch = nullptr;
  PFN_cuLogsCurrent_v12090 logs_current = nullptr;
  PFN_cuLogsDumpToMemory_v12090 logs_dump_to_memory = nullptr;

  static absl::StatusOr<DriverApi> Load();
};

inline cudaError_t AsRuntime(CUresult code) { return static_cast<cudaError_t>(code); }

}  // namespace penstock::driver

#include "src/driver/cuda/cuda_context.h"

#include "penstock/status_macros.h"
#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver {

absl::StatusOr<CUcontext> PrimaryContext(const DriverApi& api, int ordinal) {
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaInitDevice(ordinal, 0, 0), "initializing the device"));
  CUdevice device = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(AsRuntime(api.device_get(&device, ordinal)), "finding the device"));
  CUcontext context = nullptr;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(AsRuntime(api.primary_context_retain(&context, device)), "taking the device's context"));
  (void)api.primary_context_release(device);
  return context;
}

}  // namespace penstock::driver

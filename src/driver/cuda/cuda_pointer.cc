#include "src/driver/cuda/cuda_pointer.h"

#include <iterator>

#include "penstock/status_macros.h"
#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver {
namespace {

// The driver leaves these values for memory that CUDA has never seen; that is no error.
struct Attributes {
  unsigned int type = 0, managed = 0;
  int ordinal = -1;
  CUcontext context = nullptr;
  CUdeviceptr start = 0;
  size_t size = 0;
};

CUresult Read(const DriverApi& api, CUdeviceptr at, Attributes& out) {
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_CONTEXT,
                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&out.type, &out.managed, &out.ordinal, &out.context, &out.start, &out.size};
  return api.pointer_attributes(std::size(names), names, values, at);
}

}  // namespace

absl::StatusOr<PointerInfo> InspectPointer(const DriverApi& api, const void* memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  Attributes found;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(AsRuntime(Read(api, at, found)), "inspecting a pointer"));
  PointerInfo info;
  if (found.managed != 0 || (found.type != CU_MEMORYTYPE_HOST && found.type != CU_MEMORYTYPE_DEVICE)) return info;
  info.kind = found.type == CU_MEMORYTYPE_HOST ? PointerInfo::Kind::kPinned : PointerInfo::Kind::kDevice;
  if (info.kind == PointerInfo::Kind::kDevice) info.device = found.ordinal;
  // Memory without a context is mapped by the application, or belongs to a pool. The range is then an address
  // reservation, which may hold memory of several devices or none (CUDA driver API, cuPointerGetAttribute).
  info.begin = found.start;
  info.end = found.start + found.size;
  if (found.context != nullptr && info.Covers(at, 1)) return info;
  info.begin = at;
  info.end = at + 1;
  return info;
}

}  // namespace penstock::driver

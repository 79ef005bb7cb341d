#include "src/runtime/core/device_allocation.h"

#include "src/base/process_life.h"
#include "src/base/status.h"

namespace penstock::runtime {
namespace {

struct DeviceBlock {
  ~DeviceBlock() { core->FreeDevice(device, memory); }
  std::shared_ptr<RuntimeCore> core;
  driver::DeviceRef device;
  void* memory;
};

}  // namespace

absl::StatusOr<std::shared_ptr<void>> AllocateDeviceBlock(const std::shared_ptr<RuntimeCore>& core, int device,
                                                          size_t bytes) {
  if (bytes == 0) return std::shared_ptr<void>();
  const driver::DeviceRef& on = core->devices()[device];
  absl::StatusOr<void*> memory = nullptr;
  absl::Status made = core->WithMemory([&] { return (memory = on.driver->AllocateDevice(on.local, bytes)).status(); });
  if (!made.ok()) return made;
  const std::shared_ptr<DeviceBlock> block(new DeviceBlock{core, on, *memory}, base::DeleteUnlessForked());
  return std::shared_ptr<void>(block, *memory);
}

}  // namespace penstock::runtime

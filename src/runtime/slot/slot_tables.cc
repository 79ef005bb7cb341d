#include "src/runtime/slot/slot_tables.h"

#include <cstring>

namespace penstock::runtime {

void* SlotTables::AddressOf(InstanceId instance, BoxId box) const {
  auto* const first = static_cast<std::byte*>(pointers[instance]);
  return first == nullptr ? nullptr : first + boxes[box].offset;
}

void SlotTables::PatchPointers(const std::vector<PointerPatch>& patches) {
  for (const PointerPatch& p : patches) {
    void* const first = AddressOf(p.instance, p.box);
    std::memcpy(args.data() + p.at, &first, sizeof(first));
  }
}

}  // namespace penstock::runtime

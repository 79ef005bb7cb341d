#include "src/runtime/run/returned_counts.h"

#include <cstring>

#include "absl/status/status.h"
#include "penstock/detail/counted.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {
namespace {

template <class C>
int64_t CountAt(const void* at, int64_t most) {
  C count;
  std::memcpy(&count, at, sizeof(count));
  return detail::CountWithin(count, most);
}

int64_t CountOfType(const TypeInfo& type, const void* at, int64_t most) {
  const bool is_signed = type.number == NumberKind::kSigned;
  switch (type.size) {
    case 1: return is_signed ? CountAt<int8_t>(at, most) : CountAt<uint8_t>(at, most);
    case 2: return is_signed ? CountAt<int16_t>(at, most) : CountAt<uint16_t>(at, most);
    case 4: return is_signed ? CountAt<int32_t>(at, most) : CountAt<uint32_t>(at, most);
    default: return is_signed ? CountAt<int64_t>(at, most) : CountAt<uint64_t>(at, most);
  }
}

}  // namespace

ReturnedCounts ReadCounts(const RunSlot& slot) {
  ReturnedCounts counts;
  for (const CountEntry& entry : slot.graph().program().counts) {
    const int64_t most = ValueOf(entry.most, slot.tables.param_values);
    counts.push_back({slot.graph().model().serial, entry.output,
                      CountOfType(entry.type, slot.tables.pointers[entry.instance], most)});
  }
  return counts;
}

absl::StatusOr<int64_t> FindCount(const ReturnedCounts& counts, uint32_t graph, int32_t output) {
  for (const ReturnedCount& returned : counts) {
    if (returned.graph == graph && returned.output == output) return returned.count;
  }
  return absl::InvalidArgumentError(
      "the handle is of no Output with a count in the graph of this run; all elements of others count; declare the "
      "Output with a CountOf");
}

}  // namespace penstock::runtime

#include "src/runtime/state/state_box.h"

#include <array>
#include <string>

#include "graph/common/message.h"
#include "penstock/status_macros.h"

namespace penstock::runtime {
namespace {

using Sizes = std::array<int64_t, kMaxRank>;

absl::Status CheckRank(const Extent& extent, const Box& box) {
  if (box.offset.rank == extent.rank && box.size.rank == extent.rank) return absl::OkStatus();
  return absl::InvalidArgumentError("takes a slice with " + std::to_string(box.offset.rank) + " offsets and " +
                                    std::to_string(box.size.rank) + " sizes; the State has " +
                                    std::to_string(extent.rank) + (extent.rank == 1 ? " dimension" : " dimensions") +
                                    "; give one of each for each dimension");
}

absl::Status CheckDim(const StateRecord& record, const Box& box, int i) {
  const Dim &offset = box.offset.dims[i], &size = box.size.dims[i];
  const std::string which = std::to_string(i) + " of its slice is ";
  if (!offset.is_constant() || !size.is_constant()) {
    return absl::InvalidArgumentError(std::string("was given a slice: ") +
                                      (offset.is_constant() ? "size " : "offset ") + which +
                                      "a parameter, which has a value in a launch only; give a constant");
  }
  if (offset.value < 0 || size.value < 0) {
    return absl::InvalidArgumentError(std::string("was given a slice: ") + (offset.value < 0 ? "offset " : "size ") +
                                      which + std::to_string(offset.value < 0 ? offset.value : size.value) +
                                      "; give 0 or more");
  }
  const int64_t all = record.extent.dims[i].value;
  if (offset.value <= all && size.value <= all - offset.value) return absl::OkStatus();
  return absl::InvalidArgumentError(
      graph::OutsideText(record.name, i, std::to_string(offset.value), size.value, std::to_string(all)));
}

// Aligned to the right: a State of rank 1 has one slice of one row.
Sizes Values(const Extent& extent, int64_t missing) {
  Sizes values;
  values.fill(missing);
  for (int i = 0; i < extent.rank; ++i) values[kMaxRank - extent.rank + i] = extent.dims[i].value;
  return values;
}

}  // namespace

absl::StatusOr<StateBox> FindStateBox(const StateRecord& record, const Box& box) {
  const Sizes all = Values(record.extent, 1);
  Sizes from{}, count = all;
  if (!box.whole) {
    PENSTOCK_RETURN_IF_ERROR(CheckRank(record.extent, box));
    for (int i = 0; i < record.extent.rank; ++i) PENSTOCK_RETURN_IF_ERROR(CheckDim(record, box, i));
    from = Values(box.offset, 0);
    count = Values(box.size, 1);
  }
  const auto row = static_cast<size_t>(all[2]) * record.type.size, slice = static_cast<size_t>(all[1]) * row;
  return StateBox{.at = static_cast<size_t>(from[0]) * slice + static_cast<size_t>(from[1]) * row +
                        static_cast<size_t>(from[2]) * record.type.size,
                  .width = static_cast<size_t>(count[2]) * record.type.size,
                  .height = static_cast<size_t>(count[1]),
                  .depth = static_cast<size_t>(count[0]),
                  .pitch = row,
                  .slice = slice};
}

}  // namespace penstock::runtime

// Throws what CatchAll takes for the failure of a callable. See detail/refuse_index.h.
#include "penstock/detail/refuse_index.h"

#include <string>

#include "absl/status/status.h"
#include "src/base/catch_all.h"
#include "src/base/status.h"

namespace penstock::detail {
namespace {

std::string Text(const ViewIndex& index) {
  std::string text = "(";
  for (int i = 0; i < index.rank; ++i) text += (i > 0 ? ", " : "") + std::to_string(index.at[i]);
  return text + ")";
}

}  // namespace

void RefuseIndex(const ViewIndex& index, const ViewShape& view) {
  const std::string of = view.buffer != nullptr ? "buffer '" + std::string(view.buffer) + "'" : "a View of its own";
  throw base::CallFailure(absl::OutOfRangeError(
      base::Av("the callable used index " + Text(index) + " of " + of + ", which has " + std::to_string(view.depth) +
               " x " + std::to_string(view.height) + " x " + std::to_string(view.width) +
               " elements there; keep each index from 0 to below the View's depth, height and width")));
}

void RefuseView(int64_t index, int64_t size) {
  throw base::CallFailure(
      absl::OutOfRangeError(base::Av("the callable used View " + std::to_string(index) + " of a list of " +
                                     std::to_string(size) + "; keep the index from 0 to below size()")));
}

}  // namespace penstock::detail

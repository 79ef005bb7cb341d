#include "src/driver/checked/footprint.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace penstock::driver::checked {

Footprint::Footprint(const void* data, size_t width_in, size_t height_in, size_t depth_in, size_t pitch_in,
                     size_t slice_in)
    : begin(reinterpret_cast<uintptr_t>(data)),
      width(width_in),
      height(height_in),
      depth(depth_in),
      pitch(pitch_in),
      slice(slice_in) {
  if (height > 1 && pitch == width) {
    width *= height;
    height = 1;
  }
  if (height == 1 && depth > 1 && slice == width) {
    width *= depth;
    depth = 1;
  }
  if (height <= 1) pitch = 0;
  if (depth <= 1) slice = 0;
}

bool Footprint::Touches(uintptr_t from, uintptr_t to) const {
  if (empty() || from >= to || to <= begin || from >= end()) return false;
  for (size_t z = 0; z < depth; ++z) {
    const uintptr_t first = begin + z * slice;
    if (to <= first) return false;
    // The first row that ends after `from`.
    const size_t row = from < first + width ? 0 : height == 1 ? 1 : (from - first - width) / pitch + 1;
    if (row < height && first + row * pitch < to) return true;
  }
  return false;
}

bool Footprint::Touches(const Footprint& other) const {
  if (height * depth > other.height * other.depth) return other.Touches(*this);
  if (empty() || other.empty() || other.end() <= begin || end() <= other.begin) return false;
  bool found = false;
  ForEachRow([&](uintptr_t from, uintptr_t to) { return !(found = other.Touches(from, to)); });
  return found;
}

std::string TextOf(const Footprint& box) {
  const std::string start = absl::StrCat("[0x", absl::Hex(box.begin), ", ");
  if (box.dense()) return absl::StrCat(start, "+", box.width, ")");
  return absl::StrCat(start, box.width, " x ", box.height, " x ", box.depth, " bytes)");
}

std::optional<std::pair<size_t, size_t>> FindClash(const std::vector<Use>& uses) {
  std::vector<size_t> order, open;  // open: those that extend past the begin of the current one
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].box.empty()) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return uses[a].box.begin < uses[b].box.begin; });
  for (const size_t i : order) {
    const auto is_over = [&](size_t o) { return uses[o].box.end() <= uses[i].box.begin; };
    open.erase(std::remove_if(open.begin(), open.end(), is_over), open.end());
    for (const size_t o : open) {
      if ((uses[o].writes || uses[i].writes) && uses[o].box.Touches(uses[i].box)) return std::minmax(o, i);
    }
    open.push_back(i);
  }
  return std::nullopt;
}

void IntervalSet::Add(uintptr_t from, uintptr_t to) {
  if (from >= to) return;
  auto at = parts_.upper_bound(from);
  if (at != parts_.begin() && std::prev(at)->second >= from) --at;
  while (at != parts_.end() && at->first <= to) {
    from = std::min(from, at->first);
    to = std::max(to, at->second);
    at = parts_.erase(at);
  }
  parts_.emplace(from, to);
}

void IntervalSet::Add(const Footprint& box) {
  box.ForEachRow([this](uintptr_t from, uintptr_t to) {
    Add(from, to);
    return true;
  });
}

std::optional<std::pair<uintptr_t, uintptr_t>> IntervalSet::Missing(uintptr_t from, uintptr_t to) const {
  if (from >= to) return std::nullopt;
  auto at = parts_.upper_bound(from);
  if (at != parts_.begin() && std::prev(at)->second > from) from = std::prev(at)->second;
  if (from >= to) return std::nullopt;
  return std::pair(from, at == parts_.end() ? to : std::min(to, at->first));
}

std::optional<std::pair<uintptr_t, uintptr_t>> IntervalSet::Missing(const Footprint& box) const {
  std::optional<std::pair<uintptr_t, uintptr_t>> missing;
  box.ForEachRow([&](uintptr_t from, uintptr_t to) { return !(missing = Missing(from, to)); });
  return missing;
}

}  // namespace penstock::driver::checked

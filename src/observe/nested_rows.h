// NestedRows: deals intervals out to rows in which any two are disjoint or nested, as the trace event format wants the
// events of a thread to be.
//
// An interval goes to the first row that it fits into, or begins a new one; with n intervals this takes n log n,
// whatever their number of rows.
//
// Threads: plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace penstock::observe {

class NestedRows {
 public:
  // Expects intervals by their begin, and of those that begin together the longer ones first.
  size_t RowOf(int64_t begin, int64_t end) {
    CloseUntil(begin);
    size_t row = FirstWithRoom(end);
    if (row == open_.size()) {
      open_.emplace_back();
      if (row == leaves_) Grow();
    }
    open_[row].push_back(end);
    ends_.emplace(end, row);
    SetRoom(row, end);
    return row;
  }

 private:
  static constexpr int64_t kFree = std::numeric_limits<int64_t>::max();

  void CloseUntil(int64_t begin) {
    while (!ends_.empty() && ends_.top().first <= begin) {
      const size_t row = ends_.top().second;
      ends_.pop();
      open_[row].pop_back();
      SetRoom(row, open_[row].empty() ? kFree : open_[row].back());
    }
  }

  // A row without open intervals, or one whose innermost ends at `end` or later; if there is none, a new one.
  size_t FirstWithRoom(int64_t end) const {
    if (room_[1] < end) return open_.size();
    size_t at = 1;
    while (at < leaves_) at = room_[2 * at] >= end ? 2 * at : 2 * at + 1;
    return at - leaves_;
  }

  void SetRoom(size_t row, int64_t room) {
    size_t at = leaves_ + row;
    room_[at] = room;
    for (at /= 2; at > 0; at /= 2) room_[at] = std::max(room_[2 * at], room_[2 * at + 1]);
  }

  void Grow() {
    leaves_ *= 2;
    room_.assign(2 * leaves_, kNone);
    for (size_t row = 0; row < open_.size(); ++row) {
      room_[leaves_ + row] = open_[row].empty() ? kFree : open_[row].back();
    }
    for (size_t at = leaves_ - 1; at > 0; --at) room_[at] = std::max(room_[2 * at], room_[2 * at + 1]);
  }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();  // the room of a row that is not there yet

  std::vector<std::vector<int64_t>> open_;  // for each row the ends of its open intervals, the innermost last
  using End = std::pair<int64_t, size_t>;  // of an open interval, and its row
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  // A tree of maxima: at leaves_ + row the latest end that fits into the row now.
  size_t leaves_ = 1;
  std::vector<int64_t> room_ = std::vector<int64_t>(2, kNone);
};

}  // namespace penstock::observe

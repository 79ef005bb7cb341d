// Lists of indices in flat arrays, in which passes keep predecessors.
//
// Threads: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::graph {

// Sorts items that are usually few.
inline void SortShort(std::span<int32_t> items) {
  if (items.size() > 16) return std::sort(items.begin(), items.end());
  for (size_t i = 1; i < items.size(); ++i) {
    const int32_t item = items[i];
    size_t at = i;
    for (; at > 0 && items[at - 1] > item; --at) items[at] = items[at - 1];
    items[at] = item;
  }
}

// Lists of indices, one per row, in one array. Rows are appended in order: Add to the open row, then Close it.
class CsrRows {
 public:
  void Reserve(size_t rows, size_t items) { end_.reserve(rows), items_.reserve(items); }
  void Add(int32_t item) { items_.push_back(item); }
  void Close() { end_.push_back(static_cast<int32_t>(items_.size())); }
  // The same, keeping the row's distinct items in ascending order.
  void CloseAsSet() {
    const std::span<int32_t> row = open();
    SortShort(row);
    Shorten(static_cast<size_t>(row.end() - std::unique(row.begin(), row.end())));
    Close();
  }
  int32_t rows() const { return static_cast<int32_t>(end_.size()); }
  size_t items() const { return items_.size(); }
  std::span<const int32_t> operator[](int32_t row) const {
    return {items_.data() + Begin(static_cast<size_t>(row)), items_.data() + end_[row]};
  }
  // The open row, which may be sorted, or lose some of its last items, before it is closed.
  std::span<int32_t> open() { return {items_.data() + Begin(end_.size()), items_.data() + items_.size()}; }
  void Shorten(size_t items) { items_.resize(items_.size() - items); }
  bool operator==(const CsrRows&) const = default;

 private:
  int32_t Begin(size_t row) const { return row > 0 ? end_[row - 1] : 0; }

  std::vector<int32_t> end_;  // offset in items_ for each row
  std::vector<int32_t> items_;
};

// Marks the items that are in the row being built.
class Marks {
 public:
  explicit Marks(size_t items) : row_of_(items, -1) {}
  // Closes the open row after dropping repeated items. Items keep their order.
  void CloseDistinct(CsrRows& rows) {
    const int32_t row = rows.rows();
    size_t kept = 0;
    const std::span<int32_t> items = rows.open();
    for (const int32_t item : items) {
      int32_t& last = row_of_[item];
      items[kept] = item;
      kept += last != row;
      last = row;
    }
    rows.Shorten(items.size() - kept);
    rows.Close();
  }

 private:
  std::vector<int32_t> row_of_;  // for each item: the last row it was in
};

struct Edge {
  int32_t from, to;
};
// Row v: the distinct predecessors of node v, ascending.
CsrRows MakeEdges(int32_t nodes, const std::vector<Edge>& list);

}  // namespace penstock::graph

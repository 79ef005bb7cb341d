// Items: the memory of a pipeline's items: a record and room for a value for each window slot.
//
// Ownership: owns the records and the values in them.
// Threads:   a record belongs to the thread that has the item (item.h).
#pragma once

#include <memory>
#include <vector>

#include "penstock/pipeline.h"
#include "src/base/log.h"
#include "src/runtime/pipeline/item.h"
#include "src/runtime/pipeline/stage_table.h"

namespace penstock::runtime {

class Items {
 public:
  // Throws std::bad_alloc if memory for that many is lacking.
  Items(const StageTable& table, const detail::ValueType& value, size_t places);
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;
  ~Items();

  int size() const { return static_cast<int>(items_.size()); }
  PipelineItem& at(int item) { return items_[item]; }
  std::vector<PipelineItem>& all() { return items_; }
  // Releases what the item's users have left in it.
  void Clear(PipelineItem& item) const;

 private:
  const detail::ValueType value_;
  const std::shared_ptr<RuntimeCore> runtime_;
  std::unique_ptr<std::byte[]> values_;
  std::vector<PipelineItem> items_;
};

}  // namespace penstock::runtime

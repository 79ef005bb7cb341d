// Internals of the public handle on an item of a pipeline.
//
// Threads: stateless.
#pragma once

#include <memory>
#include <utility>

#include "penstock/detail/internals.h"
#include "penstock/item.h"

namespace penstock::detail {

template <>
class Internals<AnyItem> {
 public:
  // `core` null: the item is owned elsewhere, and lent to a stage.
  static AnyItem Make(std::shared_ptr<runtime::PipelineCore> core, runtime::PipelineItem& item) {
    return AnyItem(std::move(core), &item);
  }
  // The pipeline's own record, null for none.
  static runtime::PipelineItem*& RecordOf(AnyItem& item) { return item.item_; }
  static AnyItem Make(absl::Status why_none) { return AnyItem(std::move(why_none)); }
};

}  // namespace penstock::detail

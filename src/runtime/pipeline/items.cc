#include "src/runtime/pipeline/items.h"

#include <new>
#include <utility>

#include "src/base/catch_all.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/internals.h"

namespace penstock::runtime {

Items::Items(const StageTable& table, const detail::ValueType& value, size_t places)
    : value_(value), runtime_(table.runtime()), items_(places) {
  const size_t stride = (value_.size + value_.align - 1) / value_.align * value_.align;
  values_.reset(static_cast<std::byte*>(::operator new(places * stride, std::align_val_t(value_.align))));
  for (size_t i = 0; i < places; ++i) {
    items_[i].index = static_cast<int>(i);
    items_[i].value = values_.get() + i * stride;
    items_[i].parts = table.MakeParts();
  }
}

Items::~Items() {
  for (PipelineItem& item : items_) Clear(item);
  ::operator delete(values_.release(), std::align_val_t(value_.align));
}

void Items::Clear(PipelineItem& item) const {
  const base::LetGoScope scope;
  for (PipelineItem::Part& part : item.parts) {
    part.slot = Lease();
    detail::Internals<Bindings>::ValuesOf(part.bindings).Reset();
    part.run = Run();
    part.counts.clear();
    part.wanted = -1;
  }
  item.run = Run();
  item.cut_short = absl::OkStatus();
  item.pin = kAnyDevice;
  if (std::exchange(item.has_value, false)) {
    const absl::Status gone =
        base::CatchAll("pipeline: the destructor of a value", [&] { value_.destroy(item.value); });
    if (!gone.ok()) runtime_->Log(LogLevel::kError, base::Str(gone.message()));
  }
  item.status = absl::OkStatus();
  item.deadline = Deadline();
  item.tries = 0;
  item.device = -1;
}

}  // namespace penstock::runtime

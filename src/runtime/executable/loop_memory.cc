#include "src/runtime/executable/loop_memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/synchronize_stream.h"
#include "src/runtime/executable/tuning.h"

namespace penstock::runtime {
namespace {

static_assert(std::has_single_bit(tuning::kMostMarks));

// After a fatal error ended the run, work may still be running on a host device.
template <class T>
T Load(T& from) {
  return std::atomic_ref<T>(from).load(std::memory_order_relaxed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoopMemory>> LoopMemory::Create(RunSlot& slot, const driver::DeviceRef& device,
                                                               bool traced) {
  const uint32_t marks = traced ? tuning::kMostMarks : 0;
  const size_t bytes = sizeof(detail::LoopRecord) + size_t{marks} * sizeof(detail::LoopMark);
  PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock pinned,
                            slot.options().pinned.Allocate(bytes, slot.options().pinned_node));
  std::unique_ptr<LoopMemory> made(new LoopMemory(slot, device, std::move(pinned), marks));
  PENSTOCK_RETURN_IF_ERROR(made->MakeState());
  return made;
}

LoopMemory::LoopMemory(RunSlot& slot, const driver::DeviceRef& device, memory::PinnedBlock pinned, uint32_t marks)
    : slot_(slot), device_(device), pinned_(std::move(pinned)), marks_(marks) {
  record() = {};
}

LoopMemory::~LoopMemory() { slot_.options().runtime.FreeDevice(device_, state_); }

absl::Status LoopMemory::MakeState() {
  driver::Driver& driver = slot_.graph().driver();
  const driver::CurrentDevice current(driver, device_.local);
  PENSTOCK_ASSIGN_OR_RETURN(void* const state, driver.AllocateDevice(device_.local, sizeof(detail::LoopState)));
  state_ = static_cast<detail::LoopState*>(state);
  return RunOnNewStream(driver, device_.local, slot_.options().runtime.event_count(), [&](driver::Stream stream) {
    return driver.Fill(stream, {.dst = state_, .count = sizeof(*state_)});
  });
}

void LoopMemory::AddTo(detail::Decision& decision) const {
  decision.loop = state_;
  decision.record = &record();
  decision.marks = marks_;
}

LoopTotals LoopMemory::Totals(bool overlaps) const {
  const int64_t iterations = Load(record().iterations);
  return {.iterations = iterations,
          .timed = iterations - (overlaps ? Load(record().runs) : 0),
          .nanos = Load(record().nanos)};
}

detail::LoopMark LoopMemory::MarkAt(int64_t mark) const {
  detail::LoopMark& at = reinterpret_cast<detail::LoopMark*>(&record() + 1)[mark % int64_t{marks_}];
  return {.nanos = Load(at.nanos), .done = Load(at.done)};
}

// Two marks in a row are of one run if more iterations have ended at the second one.
void LoopMemory::TakeIterations(std::string_view loop, GraphConstruct::AddIterations add) {
  if (!traced()) return;
  const int64_t end = Load(record().marks);
  int64_t next = std::max(taken_, end - int64_t{marks_});
  taken_ = end;
  if (next == end) return;
  for (detail::LoopMark from = MarkAt(next); ++next < end;) {
    const detail::LoopMark to = MarkAt(next);
    if (to.done > from.done) {
      add(loop, {.begin = from.nanos, .end = to.nanos, .first = from.done, .count = to.done - from.done});
    }
    from = to;
  }
}

}  // namespace penstock::runtime

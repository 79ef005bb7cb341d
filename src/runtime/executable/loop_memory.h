// LoopMemory: what a loop that the device decides has in memory in one slot: its state (detail::LoopState), on the
// device, and what it tells the host (detail::LoopRecord), in pinned memory.
//
// Ownership: owns both; the nodes of the loop borrow them.
// Threads:   any thread may read the totals; TakeIterations belongs to the thread that has seen the slot's run end.
// Errors:    the driver's, and those of pinned memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "penstock/detail/decision.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/graph_exec/graph_construct.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class LoopMemory {
 public:
  // `traced`: the loop marks the times of its decisions.
  static absl::StatusOr<std::unique_ptr<LoopMemory>> Create(RunSlot& slot, const driver::DeviceRef& device,
                                                            bool traced);
  LoopMemory(const LoopMemory&) = delete;
  LoopMemory& operator=(const LoopMemory&) = delete;
  ~LoopMemory();

  detail::LoopState* state() const { return state_; }
  bool traced() const { return marks_ > 0; }
  void AddTo(detail::Decision& decision) const;
  // `overlaps`: each iteration decides while it is at work, so that the last one's time is unknown. While a run ends,
  // the numbers may be of different runs.
  LoopTotals Totals(bool overlaps) const;
  // The newest iterations that are not taken yet; none if it is not traced.
  void TakeIterations(std::string_view loop, GraphConstruct::AddIterations add);

 private:
  LoopMemory(RunSlot& slot, const driver::DeviceRef& device, memory::PinnedBlock pinned, uint32_t marks);
  absl::Status MakeState();
  detail::LoopRecord& record() const { return *static_cast<detail::LoopRecord*>(pinned_.data()); }
  detail::LoopMark MarkAt(int64_t mark) const;

  RunSlot& slot_;
  const driver::DeviceRef& device_;
  memory::PinnedBlock pinned_;
  const uint32_t marks_;
  detail::LoopState* state_ = nullptr;
  int64_t taken_ = 0;  // marks
};

}  // namespace penstock::runtime

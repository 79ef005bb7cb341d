#include "src/runtime/executable/slot_pool.h"

#include <algorithm>

namespace penstock::runtime {

void SlotPool::Set(std::vector<std::unique_ptr<RunSlot>> slots) {
  slots_ = std::move(slots);
  base::MutexLock lock(mu_);
  for (const auto& slot : slots_) free_.push_back(slot.get());
}

void SlotPool::Clear() {
  {
    base::MutexLock lock(mu_);
    free_.clear();
  }
  slots_.clear();
}

int SlotPool::taken() {
  base::MutexLock lock(mu_);
  return size() - static_cast<int>(free_.size());
}

int SlotPool::runs() {
  base::MutexLock lock(mu_);
  return static_cast<int>(std::count_if(slots_.begin(), slots_.end(), [](const auto& s) { return s->run != nullptr; }));
}

RunSlot* SlotPool::TakeFree() {
  base::MutexLock lock(mu_);
  if (free_.empty()) return nullptr;
  RunSlot* slot = free_.back();
  free_.pop_back();
  return slot;
}

void SlotPool::BeginRun(RunSlot& slot, RunCore* run) {
  base::MutexLock lock(mu_);
  slot.run = run;
}

void SlotPool::EndRun(RunSlot& slot) {
  {
    base::MutexLock lock(mu_);
    slot.run = nullptr;
    if (!slot.leased) free_.push_back(&slot);
  }
  event_count_.Notify();
}

bool SlotPool::HasRun(const RunSlot& slot) {
  base::MutexLock lock(mu_);
  return slot.run != nullptr;
}

void SlotPool::MarkLeased(RunSlot& slot) {
  base::MutexLock lock(mu_);
  slot.leased = true;
}

void SlotPool::GiveBack(RunSlot& slot) {
  {
    base::MutexLock lock(mu_);
    slot.leased = false;
    if (slot.run == nullptr) free_.push_back(&slot);
  }
  event_count_.Notify();
}

}  // namespace penstock::runtime

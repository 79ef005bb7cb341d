#include "src/runtime/core/in_flight_list.h"

#include <utility>

namespace penstock::runtime {

void InFlightList::Add(const std::shared_ptr<InFlight>& executable) {
  base::MutexLock lock(mu_);
  std::erase_if(executables_, [](const auto& e) { return e.expired(); });
  executables_.push_back(executable);
}

std::vector<std::shared_ptr<InFlight>> InFlightList::Alive() const {
  std::vector<std::shared_ptr<InFlight>> alive;
  base::MutexLock lock(mu_);
  for (const auto& weak : executables_) {
    if (std::shared_ptr<InFlight> executable = weak.lock()) alive.push_back(std::move(executable));
  }
  return alive;
}

void InFlightList::AdvanceAll() const {
  for (const auto& executable : Alive()) executable->AdvanceAll();
}

void InFlightList::AbandonAll(const absl::Status& why) const {
  for (const auto& executable : Alive()) executable->AbandonAll(why);
}

InFlightList::Left InFlightList::AdvanceAndCount() const {
  Left left;
  for (const auto& executable : Alive()) {
    executable->AdvanceAll();
    left.stuck += executable->IsStuck() ? 1 : 0;
    left.abandoned += executable->CountAbandoned();
  }
  return left;
}

}  // namespace penstock::runtime

// RuntimeCore's memory: its pinned pools, and what it waits for when memory runs out.
#include <string>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/test_hook.h"

namespace penstock::runtime {

// For the first driver with devices on a PCI bus: no other memory is worth the choice of a node.
void RuntimeCore::LoadTopology() {
  topology_ = HookedTopology();
  if (topology_ != nullptr) return;
  absl::StatusOr<memory::Topology> here = memory::Topology::OfThisComputer();
  if (here.ok()) {
    topology_ = std::make_shared<const memory::Topology>(*std::move(here));
  } else {
    Log(LogLevel::kInfo, "pinned memory is taken from any NUMA node: " + base::Str(here.status().message()));
  }
}

int RuntimeCore::NodeOf(const driver::DeviceInfo& device) const {
  return topology_ == nullptr || device.pci_bus_id.empty() ? -1 : topology_->NodeNear(device.pci_bus_id);
}

memory::PinnedPoolOptions RuntimeCore::PoolOptions(const driver::Driver& driver) {
  memory::PinnedPoolOptions options = HookedPinnedOptions();
  options.budget = budget_;
  options.returned = [this] { event_count_.Notify(); };
  if (driver.device_count() == 0 || driver.device(0).pci_bus_id.empty()) return options;
  LoadTopology();
  if (topology_ == nullptr) return options;
  options.node = NodeOf(driver.device(0));
  options.on_node = [this](int node, const std::function<void()>& allocate) {
    const absl::Status status = topology_->OnNode(node, allocate);
    if (!status.ok()) Log(LogLevel::kInfo, "pinned memory is taken from any node: " + base::Str(status.message()));
  };
  return options;
}

void RuntimeCore::TrimPools() {
  for (const auto& pool : pinned_) pool->Trim();
}

absl::Status RuntimeCore::WithMemory(const std::function<absl::Status()>& make) {
  absl::Status made = make();
  if (absl::IsResourceExhausted(made) && !base::InUserCode()) {
    TrimPools();
    int64_t ended = 0;
    do {
      ended = releases_.ended();
      made = make();
    } while (absl::IsResourceExhausted(made) &&
             WaitForMemory(ended, [&] { return releases_.ended() > ended; }, /*blocks=*/false, {}));
  }
  NoteFault(made);
  return made;
}

absl::StatusOr<memory::PinnedBlock> RuntimeCore::AllocateHost(size_t bytes, Deadline deadline) {
  memory::PinnedPool& pool = pinned(0);
  absl::StatusOr<memory::PinnedBlock> block = pool.Allocate(bytes);
  const bool too_large = bytes > static_cast<size_t>(pinned_budget_);
  if (absl::IsResourceExhausted(block.status()) && !too_large && !base::InUserCode()) {
    TrimPools();
    const memory::PinnedPool::Waiter waiter(pool);
    int64_t ended = 0, returned = 0;
    do {
      ended = releases_.ended();
      returned = pool.returned();
      block = pool.Allocate(bytes);
    } while (absl::IsResourceExhausted(block.status()) &&
             WaitForMemory(
                 ended, [&] { return releases_.ended() > ended || pool.returned() > returned; },
                 /*blocks=*/true, deadline));
    if (absl::IsResourceExhausted(block.status())) {
      PENSTOCK_RETURN_IF_ERROR(CheckOpen());
      if (deadline.passed()) {
        return absl::DeadlineExceededError(base::Str(block.status().message()) +
                                           "; not enough came back before the deadline of MakeHostBuffer");
      }
    }
  }
  NoteFault(block.status());
  return block;
}

// Waits until `more`: that releases have ended since there were `ended_then`, or else that a block has come back. False
// where nothing is to come; a run that was abandoned may never end.
bool RuntimeCore::WaitForMemory(int64_t ended_then, const std::function<bool()>& more, bool blocks, Deadline deadline) {
  host::WaitForProgress(event_count_, notifies_, deadline.at(), [&] {
    int64_t stuck = 0, abandoned = copies_left_.load(std::memory_order_acquire);
    for (const auto& executable : Executables()) {
      executable->AdvanceAll();
      stuck += executable->IsStuck() ? 1 : 0;
      abandoned += executable->CountAbandoned();
    }
    const bool to_come = releases_.AnyToCome(ended_then, stuck) || (blocks && MayReturnBlocks(abandoned));
    return more() || !to_come || !CheckOpen().ok();
  });
  return more();
}

// A run counts as in flight, or as letting go, until its blocks have returned: in this order.
bool RuntimeCore::MayReturnBlocks(int64_t abandoned) const {
  const bool runs = in_flight_.runs() > abandoned || letting_go_.load(std::memory_order_acquire) > 0;
  return runs && blocks_left_.load(std::memory_order_acquire) > 0;
}

void RuntimeCore::LeftBlockReturned() {
  blocks_left_.fetch_sub(1, std::memory_order_acq_rel);
  event_count_.Notify();
}

PinnedGauges RuntimeCore::pinned_gauges() const {
  PinnedGauges sum;
  for (const auto& pool : pinned_) {
    const PinnedGauges one = pool->gauges();
    sum.in_use += one.in_use;
    sum.peak += one.peak;
    sum.reserved += one.reserved;
    sum.slabs += one.slabs;
    sum.waits += one.waits;
  }
  sum.budget = pinned_budget_;
  return sum;
}

}  // namespace penstock::runtime

// ResidentImage: what the workers of a region on a CUDA device read: the tasks of each with their arguments and waits,
// as penstock/detail/resident_protocol.h lays them out, and the words by which they wait for each other.
//
// Launches write the tasks in pinned memory. What they have changed is copied to the device before the graph runs.
//
// Ownership: owns its memory; borrows the slot, whose operations it copies.
// Threads:   used only by the slot's owner. The slot's last run must have ended before it is written.
// Errors:    the driver's and the pool's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/detail/resident_protocol.h"
#include "src/driver/device_ref.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class ResidentImage {
 public:
  // A task's argument block has at most so many bytes, and its arguments are aligned to 16 at most.
  static constexpr uint32_t kMostArgsBytes = 960;
  // A region's workers, each of which may wait for all others. Its nodes have at most kMostArgsBytes of arguments.
  static constexpr int32_t kMostWorkers = 128;

  static absl::StatusOr<std::unique_ptr<ResidentImage>> Create(Slot& slot, const driver::DeviceRef& device,
                                                               const RegionEntry& region);
  ResidentImage(const ResidentImage&) = delete;
  ResidentImage& operator=(const ResidentImage&) = delete;
  ~ResidentImage();

  // Copies the operations of the region's nodes, as they are in the slot, to pinned memory.
  void Write();
  // Copies what has been written since the last call to the device.
  absl::Status Refresh(driver::Stream stream);
  // The kernel that does them.
  const driver::KernelOp& op() const { return op_; }

 private:
  // Where a task is.
  struct Place {
    uint32_t page = 0, offset = 0;
  };
  ResidentImage(Slot& slot, const driver::DeviceRef& device, const RegionEntry& region);
  void PlaceTasks();
  uint32_t BytesOfArgs(int32_t task) const;
  absl::Status Allocate();
  void MakeRecords();
  void MakeRecord(int32_t task, const std::vector<uint32_t>& position);
  uint64_t CodeOf(const GraphNodeEntry& node) const;
  void MakeOp();
  size_t image_bytes() const { return ends_.size() * detail::kPageBytes + first_page_.size() * sizeof(uint32_t); }
  size_t words_at() const;  // in the device memory
  std::byte* At(const Place& place) const { return pages_ + size_t{place.page} * detail::kPageBytes + place.offset; }
  uint32_t WordFor(int32_t worker, int32_t reader) const;

  Slot& slot_;
  const driver::DeviceRef& device_;
  const RegionEntry& region_;
  std::vector<uint32_t> first_page_;  // of each worker, and one past the last
  std::vector<Place> places_;  // of each task
  std::vector<Place> ends_;  // of each page
  memory::PinnedBlock pinned_;  // the pages, then `first_page_`
  std::byte* pages_ = nullptr;
  // Device memory: the same, then the workers' progress and the state.
  std::byte* device_pages_ = nullptr;
  bool stale_ = true;  // the device has not all that was written
  detail::ResidentArgs args_{};
  void* argv_[1] = {&args_};
  driver::KernelOp op_;
};

}  // namespace penstock::runtime

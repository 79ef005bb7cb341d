// ResidentImage: what the workers of a region on a CUDA device read: the tasks of each with their arguments and waits,
// as penstock/detail/resident_protocol.h lays them out, and the words by which they wait for each other.
//
// Launches write the tasks in pinned memory. What they have changed is copied to the device before the graph runs.
//
// Ownership: owns its memory; borrows the sections' slots, whose operations it copies, and the slot with the memory.
// Threads:   used only by the slot's owner. The slot's last run must have ended before it is written.
// Errors:    the driver's and the pool's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/detail/resident_protocol.h"
#include "src/driver/device_ref.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/graph_exec/resident_section.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class ResidentImage {
 public:
  // A task's argument block has at most so many bytes, and its arguments are aligned to 16 at most.
  static constexpr uint32_t kMostArgsBytes = 960;
  // A region's workers, each of which may wait for all others. Its nodes have at most kMostArgsBytes of arguments.
  static constexpr int32_t kMostWorkers = 128;
  // The targets that a section may have.
  static constexpr size_t kMostTargets = 65;

  // `times`: pinned memory for two words of each node of the only section, in the order of its schedule's lists, which
  // the workers write; null: they take no times.
  static absl::StatusOr<std::unique_ptr<ResidentImage>> Create(const Slot& slot, const driver::DeviceRef& device,
                                                               std::vector<ResidentSection> sections,
                                                               uint64_t* times = nullptr);
  ResidentImage(const ResidentImage&) = delete;
  ResidentImage& operator=(const ResidentImage&) = delete;
  ~ResidentImage();

  // Copies the operations of the nodes, as they are in their slots, and the decisions to pinned memory.
  void Write();
  // Copies what has been written since the last call to the device.
  absl::Status Refresh(driver::Stream stream);
  // From now on a host word that is not 0 ends loops. The kernel's arguments are others then.
  void UseStop(const uint32_t* stop) { args_.stop = stop; }
  // The kernel that does them.
  const driver::KernelOp& op() const { return op_; }
  // Device memory of its own.
  void* memory() const { return device_pages_; }

 private:
  // Where a record is.
  struct Place {
    uint32_t page = 0, offset = 0;
  };
  // The tasks of a section, and where its records are.
  struct Section {
    ResidentSection of;
    std::vector<Place> tasks;
    std::vector<uint32_t> position;  // of each task on its worker, from 1
    int32_t decider = 0;  // the worker
    Place decides;  // what decides instead of a condition
    std::vector<Place> begin, branch;  // of each worker
    bool branches() const { return !of.targets.empty(); }
    bool has_record_that_decides() const { return branches() && of.condition < 0; }
  };
  struct Wait {
    int32_t worker;
    uint32_t position;  // 0: it has entered the section
  };

  ResidentImage(const Slot& slot, const driver::DeviceRef& device, std::vector<ResidentSection> sections,
                uint64_t* times);
  void PlaceRecords();
  void PlaceRecordsOf(int32_t worker);
  Place PlaceRecord(size_t args, size_t waits, bool begins_section);
  absl::Status Allocate();
  void MakeRecords(const Section& section);
  void MarkRepeats(const Section& section, std::span<const int32_t> tasks);
  std::vector<Wait> WaitsOf(const Section& section, int32_t task) const;
  std::vector<Wait> WaitsForAll(const Section& section) const;
  detail::ResidentRecord& MakeRecord(const Place& at, uint64_t code, size_t args);
  void AddWaits(const Section& section, int32_t worker, const std::vector<Wait>& waits, const Place& at);
  void MakeBranch(const Section& section, int32_t worker);
  uint32_t TargetOf(int32_t section, int32_t worker) const;
  void MakeOp();
  // Offsets in both memories.
  size_t first_page_at() const { return pages_used_ * size_t{detail::kPageBytes}; }
  size_t first_time_at() const { return first_page_at() + first_page_.size() * sizeof(uint32_t); }
  size_t image_bytes() const { return first_time_at() + first_time_.size() * sizeof(uint32_t); }
  // In the device memory only.
  size_t words_at() const;
  size_t word_bytes() const;
  std::byte* At(const Place& place) const { return pages_ + size_t{place.page} * detail::kPageBytes + place.offset; }
  detail::ResidentRecord& RecordAt(const Place& place) const;

  const Slot& slot_;
  const driver::DeviceRef& device_;
  std::vector<Section> sections_;
  int32_t workers_ = 1;
  std::vector<uint32_t> first_page_;  // of each worker, and one past the last
  std::vector<uint32_t> first_time_;  // of each worker, and one past the last; empty: none is taken
  std::vector<uint32_t> goes_on_;  // pages that go on on the next one in the middle of a section
  uint32_t pages_used_ = 0;
  uint32_t used_ = 0;  // bytes of the last of them
  uint64_t* const times_;
  memory::PinnedBlock pinned_;  // the pages, then `first_page_` and `first_time_`
  std::byte* pages_ = nullptr;
  // Device memory: the same, then the workers' progress, the state and the times.
  std::byte* device_pages_ = nullptr;
  bool stale_ = true;  // the device has not all that was written
  detail::ResidentArgs args_{};
  void* argv_[1] = {&args_};
  driver::KernelOp op_;
};

}  // namespace penstock::runtime

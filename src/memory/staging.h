// Staging: copies between devices and host memory that is not pinned, by several host threads through pinned chunks.
//
// A copy is cut into chunks (chunks.h). Each thread has a few chunk blocks, a stream and events of its own: on the way
// in it fills a block and submits its copy to the device, on the way out it submits the copy to a block and empties
// that once it is complete. So host and link work at once, and several threads keep up with the link where one does
// not. Copies are taken up in the order they were posted, each direction for itself; half of the threads look for
// uploads first, the others for downloads, and any helps with what there is.
//
// Ownership: owns its threads, blocks, streams and events. What it was given must be done before it goes.
// Threads:   Post from any thread; it never blocks. `done` is called by a staging thread, with no lock held. Threads
//            sleep while there is nothing to do.
// Ordering:  the host knows that all the copy needs has happened before it is posted; when `done` is called, all of it
//            has happened and is visible to the callee, and neither side is touched any more.
// Errors:    the first failure goes to op.tag.fault; of a copy whose run has failed no further chunk is begun. `done`
// is
//            called all the same, and only when nothing of it is under way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/host/bell.h"
#include "src/memory/chunks.h"
#include "src/memory/pinned_pool.h"

namespace penstock::memory {

struct StagingOptions {
  int threads = 2;             // for both directions together; at least 1
  size_t chunk_bytes = size_t{1} << 20;
  int blocks_per_thread = 3;   // at least 1
};

// One copy. Whoever posts it owns it; it may be used again once it is done.
struct StagedCopy {
  driver::CopyOp op;  // kHostToDevice or kDeviceToHost, not empty, `tag.fault` set; the host's side is any memory
  int device = 0;     // of the driver
  void (*done)(void* context, int64_t arg) = nullptr;
  void* context = nullptr;
  int64_t arg = 0;

 private:
  friend class Staging;
  Chunks chunks;    // constant while posted
  size_t next = 0;  // chunk; with `left` guarded by Staging::mu_
  size_t left = 0;  // chunks that have not ended
};

class Staging {
 public:
  // `bell` is rung by the driver, where that rings.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(driver::Driver& driver, PinnedPool& pool, host::Bell& bell,
                                                         const StagingOptions& options);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void Post(StagedCopy& copy);

  int threads() const { return static_cast<int>(workers_.size()); }
  size_t chunk_bytes() const { return options_.chunk_bytes; }

 private:
  // First in, first out. The copies of one direction that have chunks left to begin.
  using Queue = std::vector<StagedCopy*>;
  struct Block {
    PinnedBlock memory;
    std::vector<driver::Event> events;  // a device each
    StagedCopy* copy = nullptr;         // under way
    driver::CopyOp chunk;
    bool recorded = false;
  };
  struct Worker {
    int index = 0;
    int first = 0;  // direction it looks at first
    std::vector<Block> blocks;
    std::array<std::vector<size_t>, 2> under_way;              // blocks of each direction, oldest first
    std::vector<size_t> free;                                  // blocks
    std::vector<std::array<driver::Stream, 2>> streams;        // of each device
    std::thread thread;
  };

  Staging(driver::Driver& driver, host::Bell& bell, const StagingOptions& options);
  absl::Status MakeWorker(PinnedPool& pool, int index);
  absl::Status StartThreads();
  void Work(Worker& worker);
  bool Step(Worker& worker);
  bool EndOldest(Worker& worker, size_t direction);
  bool IsComplete(Worker& worker, Block& block);
  bool BeginNext(Worker& worker);
  absl::Status Submit(Worker& worker, Block& block, size_t direction);
  StagedCopy* Take(Worker& worker, size_t* chunk, size_t* direction);
  void EndChunks(StagedCopy& copy, size_t count);
  bool Sleep();  // false: the threads are to end

  driver::Driver& driver_;
  host::Bell& bell_;
  const StagingOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;

  base::Mutex mu_;
  base::CondVar posted_;
  std::array<Queue, 2> queues_ ABSL_GUARDED_BY(mu_);  // uploads, downloads
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock::memory

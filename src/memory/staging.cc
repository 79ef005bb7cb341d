// The parts of a staging ring and its threads. See staging.h.
#include "src/memory/staging.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "penstock/status_macros.h"
#include "src/base/thread.h"
#include "src/memory/tuning.h"

namespace penstock::memory {
namespace {

StagingOptions Complete(StagingOptions options) {
  options.block_bytes = std::max(options.block_bytes, options.chunk_bytes);
  return options;
}

bool FeederCopies(const StagingOptions& options) { return options.threads <= kThreadsOfCopyingFeeder; }

ChunkSchedule::Sizes SizesFor(const StagingOptions& options, int devices) {
  const int workers = options.threads - (FeederCopies(options) ? 0 : 1);
  return {.workers = workers,
          .blocks_per_worker = kBlocksToFill,
          .download_blocks = workers / 2 + kMostBlocksUnderWay,
          .devices = devices};
}

}  // namespace

Staging::Staging(driver::Driver& driver, host::EventCount& event_count, const StagingOptions& options)
    : options_(Complete(options)),
      feeder_copies_(FeederCopies(options)),
      sizes_(SizesFor(options, driver.device_count())),
      exchange_(driver, event_count, sizes_),
      blocks_(driver),
      feeding_(driver, event_count, exchange_, blocks_) {}

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(driver::Driver& driver, PinnedPool& pool,
                                                         host::EventCount& event_count, const StagingOptions& options) {
  std::unique_ptr<Staging> staging(new Staging(driver, event_count, options));
  PENSTOCK_RETURN_IF_ERROR(staging->Make(pool));
  PENSTOCK_RETURN_IF_ERROR(staging->StartThreads());
  return staging;
}

absl::Status Staging::Make(PinnedPool& pool) {
  PENSTOCK_RETURN_IF_ERROR(blocks_.Make(pool, sizes_.blocks(), options_.block_bytes, options_.node));
  if (feeder_copies_) feeding_.CopyAs(0);
  return feeding_.Make();
}

absl::Status Staging::StartThreads() {
  try {
    for (int t = 0; t < options_.threads; ++t) {
      threads_.push_back(base::StartThread("ps-stage/" + std::to_string(t), [this, t] { Run(t); }));
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(std::string("the system refuses a staging thread: ") + error.what() +
                                        "; let this process or its user have more, or use fewer");
  }
  return absl::OkStatus();
}

void Staging::Run(int thread) {
  options_.begin(thread);
  if (thread == 0) return feeding_.Run();
  HostCopier(exchange_, blocks_, feeder_copies_ ? thread : thread - 1).Run();
}

Staging::~Staging() {
  exchange_.Stop();
  for (std::thread& thread : threads_) thread.join();
}

// Chunks are smaller than a block if the copy is too small to give every thread one.
size_t Staging::ChunkBytes(const driver::CopyOp& op) const {
  const size_t share = op.width * op.height * op.depth / sizes_.workers;
  return std::clamp(share, options_.chunk_bytes, options_.block_bytes);
}

void Staging::Post(StagedCopy& copy) {
  copy.progress = CopyProgress(copy.op, ChunkBytes(copy.op));
  const auto bytes = static_cast<int64_t>(copy.op.width * copy.op.height * copy.op.depth);
  (copy.is_upload() ? up_bytes_ : down_bytes_).fetch_add(bytes, std::memory_order_relaxed);
  exchange_.Post(copy);
}

}  // namespace penstock::memory

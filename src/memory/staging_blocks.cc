#include "src/memory/staging_blocks.h"

#include "penstock/status_macros.h"

namespace penstock::memory {

StagingBlocks::~StagingBlocks() {
  for (const Block& block : blocks_) {
    for (const driver::Event event : block.events) driver_.DestroyEvent(event);
  }
}

absl::Status StagingBlocks::Make(PinnedPool& pool, int count, size_t block_bytes, int node) {
  for (int b = 0; b < count; ++b) {
    Block& block = blocks_.emplace_back();
    PENSTOCK_ASSIGN_OR_RETURN(block.memory, pool.Allocate(block_bytes, node));
    for (int d = 0; d < driver_.device_count(); ++d) {
      PENSTOCK_ASSIGN_OR_RETURN(const driver::Event event, driver_.CreateEvent(d, false));
      block.events.push_back(event);
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::memory

// HostCopier: one copying thread of a staging ring. It fills blocks from the user's memory, and empties blocks into it.
//
// Ownership: borrows the exchange and the blocks.
// Threads:   belongs to one thread.
#pragma once

#include "src/memory/chunk_exchange.h"
#include "src/memory/staging_blocks.h"

namespace penstock::memory {

class HostCopier {
 public:
  HostCopier(ChunkExchange& exchange, const StagingBlocks& blocks, WorkerId worker)
      : exchange_(exchange), blocks_(blocks), worker_(worker) {}

  // Copies until the exchange is stopped.
  void Run();
  // Copies one chunk if there is one. Returns whether there was.
  bool CopyOne();

 private:
  ChunkExchange& exchange_;
  const StagingBlocks& blocks_;
  const WorkerId worker_;
};

}  // namespace penstock::memory

#include "src/memory/host_copier.h"

#include <optional>

#include "src/driver/copy_box.h"
#include "src/memory/streaming_copy.h"

namespace penstock::memory {

void HostCopier::Run() {
  do {
    while (CopyOne()) {
    }
  } while (exchange_.AwaitCopy(worker_));
}

bool HostCopier::CopyOne() {
  const std::optional<StagedChunk> chunk = exchange_.BeginCopy(worker_);
  if (!chunk) return false;
  void* const block = blocks_.memory(chunk->block);
  if (chunk->copy->is_upload()) {
    driver::CopyOnHost(IntoBlock(chunk->op(), block));
  } else if (chunk->wanted) {
    StreamingCopy(OutOfBlock(chunk->op(), block));
  }
  exchange_.EndCopy(*chunk);
  return true;
}

}  // namespace penstock::memory

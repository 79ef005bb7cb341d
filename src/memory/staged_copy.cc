#include "src/memory/staged_copy.h"

#include <algorithm>

#include "src/memory/tuning.h"

namespace penstock::memory {

CopyProgress::CopyProgress(const driver::CopyOp& op, size_t chunk_bytes)
    : chunks_(op, chunk_bytes),
      not_ended_(chunks_.count()),
      most_under_way_(static_cast<int>(
          std::clamp<size_t>(kBytesUnderWay / chunk_bytes, kFewestBlocksUnderWay, kMostBlocksUnderWay))) {}

}  // namespace penstock::memory

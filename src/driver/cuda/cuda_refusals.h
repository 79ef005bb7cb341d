// What CUDA refuses while a stream captures, though the capture stays valid and only the operation is missing from it:
// batches of copies, a copy kind that does not exist, memory freed that no pool has, a capture begun inside a capture.
//
// Two witnesses. The last error of this copy of the CUDA runtime tells of calls that were made through it. The driver's
// own log tells of calls through any copy, and of those whose error the caller has cleared; it names the thread of each
// line and is read from a place in it, so nothing of the process is changed. A copy kind that does not exist is refused
// by the runtime before the driver hears of it: where it was another copy's, nothing tells.
//
// Threads: a watch belongs to the thread that began it, as a capture does.
// Errors:  no call fails; where the log cannot be read, the last error alone tells.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "src/driver/cuda/driver_api.h"

namespace penstock::driver {

// Watches the calling thread from now on, for what a stream of its captures. Clears the last error, which would
// otherwise be taken for one of the capture's.
class RefusalWatch {
 public:
  // `log_begin`: where the log stood before the capture began (LogPosition).
  static void Begin(cudaStream_t stream, CUlogIterator log_begin);
  // Ends it and returns what was refused, in CUDA's words; empty where nothing was, or the stream is not watched by
  // this thread. The last error is clear then.
  static std::string End(const DriverApi& api, cudaStream_t stream);
};

// Where the next line of the driver's log will stand.
CUlogIterator LogPosition(const DriverApi& api);

// The errors of one thread in lines of the driver's log, "[time][thread][CUDA][E] text": each text once, joined by ";
// ". The first line may say that older ones have been lost; that counts as an error, since it cannot be known whose
// they were.
std::string ErrorsOfThread(std::string_view log, unsigned long thread);

}  // namespace penstock::driver

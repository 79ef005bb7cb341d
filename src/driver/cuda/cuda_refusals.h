// RefusalWatch: the calls that CUDA refuses during a capture while the capture stays valid and only the operation is
// missing: batches of copies, an invalid copy kind, freeing memory of no pool, a capture begun inside a capture.
//
// There are two sources. The last error of this copy of the CUDA runtime shows calls made through it. The driver's own
// log shows calls through any copy, also if the caller has cleared their error; it names the thread of each line and is
// read from a given position, so nothing in the process changes. The runtime refuses an invalid copy kind before the
// driver sees it: if that was another copy of the runtime, neither source shows it.
//
// Threads:   a watch belongs to the thread that began it, as a capture does.
// Errors:    no call fails; if the log cannot be read, only the last error counts.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "src/driver/cuda/driver_api.h"

namespace penstock::driver {

// Watches the calling thread from now on, for its capture of one stream. Clears the last error, which would otherwise
// be attributed to the capture.
class RefusalWatch {
 public:
  // `log_begin`: the log's position before the capture began (LogPosition).
  static void Begin(cudaStream_t stream, CUlogIterator log_begin);
  // Ends the watch and returns what was refused, in CUDA's words; empty if nothing was, or if this thread does not
  // watch the stream. Leaves the last error clear.
  static std::string End(const DriverApi& api, cudaStream_t stream);
};

// The position of the next line of the driver's log.
CUlogIterator LogPosition(const DriverApi& api);

// The errors of one thread in lines of the driver's log, "[time][thread][CUDA][E] text": each text once, joined by ";
// ". A first line that reports lost lines counts as an error, since the lost lines may be this thread's.
std::string ErrorsOfThread(std::string_view log, unsigned long thread);

}  // namespace penstock::driver

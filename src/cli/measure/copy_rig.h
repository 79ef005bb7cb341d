// CopyRig: memory on a device and on the host, and the rates of copies between them.
//
// A rate is that of equal copies of adjacent memory, one after the other in one run (chain.h); of memory that is not
// pinned, of one copy a run. Copies of at most 1 MiB, and those within the device, are measured both on streams and in
// a graph, and the faster way counts, since it is the device that is measured: small ones are slower on streams, and
// from 512 MiB on an H200 copies within itself at two thirds of the rate in graphs. Where both directions go on at
// once, only the graph counts: on streams the other direction's small copies would be over before the first that is
// timed has been submitted. What has been copied is compared byte by byte once for each figure.
//
// Ownership: owns the memory; the runtime must outlive it.
// Threads:   one thread.
// Errors:    ResourceExhausted: the memory does not fit. DataLoss: a copy has brought something else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/ps.h"
#include "src/cli/measure/chain.h"
#include "src/cli/measure/timing.h"

namespace penstock::cli::measure {

// From where to where. Staged: of host memory that is not pinned. Both ways: while the other direction goes on.
enum class Route {
  kUpload,
  kDownload,
  kUploadBothWays,
  kDownloadBothWays,
  kStagedUpload,
  kStagedDownload,
  kWithin,
};

class CopyRig {
 public:
  // With so many bytes at either end of each route: for copies of up to that size, or for many small ones. It is twice
  // as much on the device, and three times as much on the host.
  static absl::StatusOr<CopyRig> Make(Runtime& runtime, int device, int64_t bytes);

  // GB/s of copies of so many bytes.
  absl::StatusOr<double> Rate(Route route, int64_t bytes, const Effort& effort);
  // GB/s of filling so many bytes.
  absl::StatusOr<double> FillRate(int64_t bytes, const Effort& effort);

  // So many copies. For tests.
  Chain::Declare Copies(Route route, int64_t bytes);

 private:
  CopyRig(Runtime& runtime, int device) : runtime_(&runtime), device_(device) {}
  absl::Status Allocate(int64_t bytes);

  CompileOptions Options(Mode mode) const { return {.device = device_, .mode = mode}; }
  int MostCopies(Route route, int64_t bytes) const;
  Chain::Declare CopiesWithin(int64_t bytes);
  Chain::Declare CopiesOfHost(Route route, int64_t bytes);
  std::span<uint8_t> Host(Route route, int64_t bytes);
  // How long a copy of the chain takes.
  absl::StatusOr<double> Time(Route route, int64_t bytes, const Effort& effort, Chain& chain);
  absl::StatusOr<double> TimeBesideOther(Route route, int64_t bytes, const Effort& effort, Chain& chain);
  // Puts something else where the route ends, and the pattern where it begins.
  absl::Status Poison(Route route, int64_t bytes);
  absl::Status Check(Route route, int64_t bytes);

  Runtime* runtime_;
  int device_;
  State<uint8_t> target_, source_;  // of uploads, and of downloads
  HostBuffer<uint8_t> pattern_, down_;
  std::vector<uint8_t> plain_;
};

// Bytes that differ from those at other places.
void FillPattern(std::span<uint8_t> bytes);
// DataLoss unless they are the same.
absl::Status CheckCopied(std::span<const uint8_t> copied, std::span<const uint8_t> from);

}  // namespace penstock::cli::measure

#include "src/memory/staging_tuning.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include "absl/strings/str_format.h"
#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"
#include "src/host/progress.h"
#include "src/memory/streaming_copy.h"
#include "src/memory/tuning.h"

namespace penstock::memory {
namespace {

// The measurement itself.
constexpr size_t kBlock = size_t{4} << 20, kPiece = size_t{256} << 10, kHostBytes = size_t{32} << 20;
constexpr size_t kPauses = kBlock / kPiece - 1;  // between the pieces of a block
constexpr int kRepeats = 3;  // the best counts, since other activity only slows it down

template <class F>
absl::StatusOr<double> BestMicroseconds(F f) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    PENSTOCK_RETURN_IF_ERROR(f());
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  return std::max(best, 0.01);
}

// The stream, events and memory with which the measurement copies.
class Link {
 public:
  Link(driver::Driver& driver, int device) : driver_(driver), device_(device), token_(driver.MakeCurrent(device)) {}
  ~Link() {
    if (memory_ != nullptr) driver_.FreeDevice(device_, memory_);
    if (event_) driver_.DestroyEvent(event_);
    if (stream_) driver_.DestroyStream(stream_);
    driver_.RestoreCurrent(token_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  absl::Status Make(void* block) {
    block_ = block;
    PENSTOCK_ASSIGN_OR_RETURN(stream_, driver_.CreateStream(device_, 0));
    PENSTOCK_ASSIGN_OR_RETURN(event_, driver_.CreateEvent(device_, false));
    PENSTOCK_ASSIGN_OR_RETURN(memory_, driver_.AllocateDevice(device_, kBlock));
    return Copy(driver::CopyKind::kHostToDevice, kBlock);  // provides data for the downloads and raises the clocks
  }

  // Copies a block in pieces, one after another, until all are done.
  absl::Status Copy(driver::CopyKind kind, size_t piece) {
    const bool up = kind == driver::CopyKind::kHostToDevice;
    for (size_t at = 0; at < kBlock; at += piece) {
      driver::CopyOp op{.kind = kind, .width = piece};
      op.src = static_cast<std::byte*>(up ? block_ : memory_) + at;
      op.dst = static_cast<std::byte*>(up ? memory_ : block_) + at;
      PENSTOCK_RETURN_IF_ERROR(driver_.Copy(stream_, op));
    }
    PENSTOCK_RETURN_IF_ERROR(driver_.Record(event_, stream_));
    for (;;) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool complete, driver_.Query(event_));
      if (complete) return absl::OkStatus();
      host::CpuPause();
    }
  }

 private:
  driver::Driver& driver_;
  const int device_, token_;
  void* block_ = nullptr;
  void* memory_ = nullptr;
  driver::Stream stream_;
  driver::Event event_;
};

// The nearest power of two.
size_t ChunkFor(double bytes) {
  const size_t chunk = std::bit_ceil(static_cast<size_t>(std::max(bytes, 1.0) / std::numbers::sqrt2));
  return std::clamp(chunk, kSmallestChunk, kLargestChunk);
}

}  // namespace

absl::StatusOr<StagingRates> MeasureStaging(driver::Driver& driver, PinnedPool& pool, int device) {
  PENSTOCK_ASSIGN_OR_RETURN(PinnedBlock block, pool.Allocate(kBlock));
  std::memset(block.data(), 1, kBlock);
  std::vector<std::byte> host(kHostBytes, std::byte{2});
  StagingRates rates;
  size_t next = 0;  // another part each time, since the last one may be cached
  const auto part = [&] { return host.data() + (next++ * kBlock) % kHostBytes; };
  PENSTOCK_ASSIGN_OR_RETURN(const double fill, BestMicroseconds([&] {
                              std::memcpy(block.data(), part(), kBlock);
                              return absl::OkStatus();
                            }));
  PENSTOCK_ASSIGN_OR_RETURN(const double empty, BestMicroseconds([&] {
                              StreamingCopy({.dst = part(), .src = block.data(), .width = kBlock});
                              return absl::OkStatus();
                            }));
  Link link(driver, device);
  PENSTOCK_RETURN_IF_ERROR(link.Make(block.data()));
  const auto time = [&](driver::CopyKind kind, size_t piece) {
    return BestMicroseconds([&] { return link.Copy(kind, piece); });
  };
  PENSTOCK_ASSIGN_OR_RETURN(const double up, time(driver::CopyKind::kHostToDevice, kBlock));
  PENSTOCK_ASSIGN_OR_RETURN(const double down, time(driver::CopyKind::kDeviceToHost, kBlock));
  PENSTOCK_ASSIGN_OR_RETURN(const double pieces, time(driver::CopyKind::kHostToDevice, kPiece));
  rates.fill = kBlock / fill;
  rates.empty = kBlock / empty;
  rates.up = kBlock / up;
  rates.down = kBlock / down;
  rates.copy_overhead = std::max(0.0, (pieces - up) / static_cast<double>(kPauses));
  return rates;
}

StagingOptions TuneStaging(const StagingRates& rates, int most) {
  const auto threads = [](double link, double host) {
    return std::max(1, static_cast<int>(std::ceil(kHostReserve * link / host)));
  };
  StagingOptions options;
  const int wanted = threads(rates.up, rates.fill) + threads(rates.down, rates.empty) + 1;  // one more, which feeds
  options.threads = std::clamp(wanted, 1, std::max(1, most));
  const double pause = rates.copy_overhead * std::max(rates.up, rates.down);  // in bytes
  options.chunk_bytes = ChunkFor(pause / kPausesAtMost);
  options.block_bytes = ChunkFor(pause / kPausesOfLarge);
  return options;
}

std::string TextOf(const StagingRates& rates, const StagingOptions& options) {
  return absl::StrFormat(
      "%d threads, chunks of %d to %d KiB; a thread fills %.1f and empties %.1f GB/s, the link takes %.1f up and %.1f "
      "down and pauses %.1f us between copies",
      options.threads, options.chunk_bytes >> 10, options.block_bytes >> 10, rates.fill / 1e3, rates.empty / 1e3,
      rates.up / 1e3, rates.down / 1e3, rates.copy_overhead);
}

}  // namespace penstock::memory

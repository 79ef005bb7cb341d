// PeerLinks: which host devices' kernels may read the memory of which others (Driver::OpenLink).
//
// Threads: thread-safe. Work that uses a link is made after the link.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace penstock::driver::host {

class PeerLinks {
 public:
  explicit PeerLinks(size_t devices) : devices_(devices), open_(devices * devices) {}

  void Open(int device, int peer) { open_[At(device, peer)].store(true, std::memory_order_relaxed); }
  bool Has(int device, int peer) const { return open_[At(device, peer)].load(std::memory_order_relaxed); }

 private:
  size_t At(int device, int peer) const { return static_cast<size_t>(device) * devices_ + static_cast<size_t>(peer); }

  const size_t devices_;
  std::vector<std::atomic<bool>> open_;  // relaxed: a plan that reads over a link is handed to other threads later
};

}  // namespace penstock::driver::host

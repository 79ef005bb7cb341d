// LoadedImages: the images of device code that an executable uses. They are unloaded after its graphs are destroyed.
//
// Unloading may wait for kernels that wait for the host, so a thread that may have to answer them leaves it to the
// completion thread, as it does with device memory (RuntimeCore::FreeDevice).
//
// Ownership: holds the images; the runtime outlives it.
// Threads:   the thread that compiles calls Hold, before the first launch; any thread may destroy it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "src/runtime/core/runtime_core.h"

namespace penstock::runtime {

class LoadedImages {
 public:
  explicit LoadedImages(RuntimeCore& runtime) : runtime_(runtime) {}
  ~LoadedImages();
  LoadedImages(const LoadedImages&) = delete;
  LoadedImages& operator=(const LoadedImages&) = delete;

  void Hold(std::vector<std::shared_ptr<const void>> images) { images_ = std::move(images); }

 private:
  RuntimeCore& runtime_;
  std::vector<std::shared_ptr<const void>> images_;
};

}  // namespace penstock::runtime

#include "src/runtime/core/loaded_images.h"

#include "src/base/user_code.h"

namespace penstock::runtime {

LoadedImages::~LoadedImages() {
  using Images = std::vector<std::shared_ptr<const void>>;
  const bool held_up = base::answers_devices || base::InDeviceCode();
  if (images_.empty() || !held_up || !runtime_.completion().started()) return;
  runtime_.completion().Run(
      {[](void* images, int64_t) { delete static_cast<Images*>(images); }, new Images(std::move(images_))});
}

}  // namespace penstock::runtime

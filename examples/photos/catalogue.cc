// Headers only: a file that breaks off later is found when it is decoded.
#include "catalogue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "errors.h"
#include "names.h"

namespace photos {
namespace {

void Enter(Catalogue* catalogue, Photo photo) {
  absl::StatusOr<ImageInfo> info = ReadImageInfo(photo.path);
  if (!info.ok()) {
    catalogue->refused.push_back(info.status());
    return;
  }
  photo.info = *info;
  catalogue->max_width = std::max(catalogue->max_width, info->width);
  catalogue->max_height = std::max(catalogue->max_height, info->height);
  catalogue->photos.push_back(std::move(photo));
}

}  // namespace

absl::StatusOr<Catalogue> ReadCatalogue(const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> names = ListPhotos(folder);
  if (!names.ok()) return names.status();
  if (names->empty()) {
    return Error(absl::StatusCode::kNotFound, absl::StrCat("the input folder ", Quoted(folder), " is empty"),
                 "there is no file that could be a photograph", "name a folder with PNG or JPEG files");
  }
  Catalogue catalogue;
  for (const std::string& name : *names) Enter(&catalogue, {name, JoinPath(folder, name), {}});
  return catalogue;
}

}  // namespace photos

// Which files of a folder the job reads, in which order, and what it calls their edge pictures.
//
// Threads: pure functions of the file system.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace photos {

// Names of the files of `folder` to try as photographs, sorted byte by byte, so that every run sees one order. That is
// every file but hidden ones and those that go with a collection of photographs: README, LICENSE, LICENSES, COPYING,
// NOTICE and COPYRIGHT, with any extension. What is not a photograph after all is found, and named, when it is read.
// Folders inside are left out. Errors: NotFound, PermissionDenied and the like with the folder's name.
absl::StatusOr<std::vector<std::string>> ListPhotos(const std::string& folder);

// The edge picture of a file called `name`: the whole name, extension included, so that a.png and a.jpg do not meet.
std::string EdgesName(const std::string& name);

std::string JoinPath(const std::string& folder, const std::string& name);

// Makes `folder` if need be and proves, with a file that is gone afterwards, that pictures can be written into it.
absl::Status PrepareOutputFolder(const std::string& folder);

// True where both exist and are one folder, whatever they are called.
bool IsSameFolder(const std::string& a, const std::string& b);

}  // namespace photos

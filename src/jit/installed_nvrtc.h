// What a cache notes of the NVRTC that filled it: a process that finds its kernels there knows the build, which their
// keys contain, without loading the library, which takes 4 to 14 ms.
//
// The note holds as long as the library's file is the same, and so is all that decides which file the loader finds, as
// far as that can be told in a few microseconds. Where a newer one stands in front of it unnoticed, kernels of the old
// one are used, which are as good as they were.
//
// Threads: free functions. They read the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::jit {

// The version, and the size and time of the library's file: an update may keep the version, "13.0".
std::string BuildOfNvrtc(const std::string& path, const std::string& version);

// The note on the library with this path and build; empty if there is no such file, or if it is another one by now.
std::string NoteOnNvrtc(const std::string& path, const std::string& build);

// The build in a note that still holds.
std::optional<std::string> BuildInNote(std::string_view note);

}  // namespace penstock::jit

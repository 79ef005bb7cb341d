// What a cache notes of the NVRTC that filled it: a process that finds its kernels there knows the version, which their
// keys contain, without loading the library, which takes 5 to 14 ms.
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

// The note on the library with this path and version; empty if there is no such file.
std::string NoteOnNvrtc(const std::string& path, const std::string& version);

// The version in a note that still holds.
std::optional<std::string> VersionInNote(std::string_view note);

}  // namespace penstock::jit

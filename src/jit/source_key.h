// SourceKey: what a compiled source depends on, as one hash.
//
// Two sources with the same key give the same kernel; a change in anything that the compiler sees gives another key.
//
// Threads: free functions and plain values.
#pragma once

#include <string>
#include <vector>

#include "penstock/source.h"
#include "src/jit/sha256.h"

namespace penstock::jit {

// A source, and what to compile it for: "sm_90".
struct WantedKernel {
  const Source::Parts* source = nullptr;
  std::string architecture;
};

// The options for NVRTC: those of the source, after the architecture, and after one that keeps it from looking for
// headers beside a file that there is not.
std::vector<std::string> OptionsOf(const WantedKernel& wanted);

// The architecture that these options name last, without "-arch=".
std::string ArchitectureIn(const std::vector<std::string>& options);

// `build`: of NVRTC (installed_nvrtc.h). What NVRTC_APPEND_FLAGS adds to the options is part of the key.
Digest KeyOf(const WantedKernel& wanted, const std::string& build);

// Whether the key tells all that the kernel depends on. It does not if the source may read files, whose contents may
// change: by an #include of anything that is not one of its headers, or by an option that names files or folders. Nor
// does it if the source says when it is compiled (__DATE__), or while NVRTC_APPEND_FLAGS is set.
bool KeyTellsAll(const Source::Parts& source);

}  // namespace penstock::jit

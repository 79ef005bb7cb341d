// Nvrtc: NVIDIA's run-time compiler, a shared library of the CUDA toolkit that is loaded when it is first needed. It
// needs neither a GPU nor a driver.
//
// Ownership: the library stays loaded until the process ends.
// Threads:   thread-safe. Compilations in several threads run side by side.
// Errors:    Unavailable if there is no such library, with the places looked at and what to install. InvalidArgument
//            with the compiler's log for a source that it refuses. ResourceExhausted if it has no memory, Unavailable
//            if it lacks its second library, Internal for other faults of its own. Cancelled if the caller has asked
//            for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/jit/kernel_image.h"
#include "src/jit/source_key.h"

namespace penstock::jit {

class Nvrtc {
 public:
  struct Result {
    KernelImage kernel;
    std::string log;  // warnings; may be empty
  };

  // Loads the library, unless an earlier call has: by its name, as the system's loader finds it, then in the folders of
  // CUDA_HOME and CUDA_PATH and where the toolkit is usually installed. After a failure it tries again.
  static absl::StatusOr<const Nvrtc*> Get();
  // The same, and looks only for these files, in this order; for tests.
  static absl::StatusOr<Nvrtc> Load(const std::vector<std::string>& paths);

  // "13.0".
  const std::string& version() const { return version_; }
  // The version, and what tells patches of it apart (installed_nvrtc.h).
  const std::string& build() const { return build_; }
  // The file that was loaded.
  const std::string& path() const { return path_; }

  // `stop` is called now and then on this thread, and may return true to give up. It must neither throw nor compile.
  absl::StatusOr<Result> Compile(const WantedKernel& wanted, const std::function<bool()>& stop) const;

 private:
  using Program = void*;  // nvrtcProgram
  class Compilation;

  Nvrtc() = default;
  absl::Status Find(void* library);

  std::string version_, build_, path_;
  // The functions of nvrtc.h, whose enumeration nvrtcResult is an int here.
  const char* (*get_error_string_)(int) = nullptr;
  int (*get_version_)(int* major, int* minor) = nullptr;
  int (*create_program_)(Program*, const char* text, const char* name, int headers, const char* const* texts,
                         const char* const* names) = nullptr;
  int (*destroy_program_)(Program*) = nullptr;
  int (*compile_program_)(Program, int options, const char* const*) = nullptr;
  int (*get_image_size_)(Program, size_t*) = nullptr;
  int (*get_image_)(Program, char*) = nullptr;
  int (*get_log_size_)(Program, size_t*) = nullptr;
  int (*get_log_)(Program, char*) = nullptr;
  int (*add_name_expression_)(Program, const char*) = nullptr;
  int (*get_lowered_name_)(Program, const char* expression, const char** symbol) = nullptr;
  int (*set_flow_callback_)(Program, int (*)(void* payload, void*), void* payload) = nullptr;
};

}  // namespace penstock::jit

#include "src/jit/nvrtc.h"

#include <dirent.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/mutex.h"
#include "src/base/status.h"
#include "src/jit/installed_nvrtc.h"

namespace penstock::jit {
namespace {

constexpr const char* kLibrary = "libnvrtc.so.13";
constexpr std::string_view kBuiltins = "libnvrtc-builtins.so.13";  // and a minor version
// Of nvrtcResult.
constexpr int kDone = 0, kOutOfMemory = 1, kNoBuiltins = 7, kInternalError = 11;
constexpr const char* kInstall =
    "install NVRTC of CUDA 13 (the package cuda-nvrtc-13-0, or nvidia-cuda-nvrtc from PyPI) and name its folder in "
    "LD_LIBRARY_PATH, or the toolkit's in CUDA_HOME";
constexpr size_t kMostLog = 16384;  // bytes of a log in a message

// Where the library may be, in the order in which it is looked for. A process with more rights than its user takes no
// folder from the environment.
std::vector<std::string> UsualPaths() {
  std::vector<std::string> paths{kLibrary};
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const home = secure_getenv(name);
    if (home == nullptr || *home != '/') continue;
    paths.push_back(absl::StrCat(home, "/lib64/", kLibrary));
    paths.push_back(absl::StrCat(home, "/lib/", kLibrary));
  }
  for (const char* folder :
       {"/usr/local/cuda/lib64", "/usr/local/cuda-13/lib64", "/opt/cuda/lib64", "/usr/lib/cuda/lib64"}) {
    paths.push_back(absl::StrCat(folder, "/", kLibrary));
  }
  return paths;
}

// NVRTC opens a second library by its name only, which the loader need not find where it does not find the first; it
// takes one that is loaded already.
void LoadBuiltinsBeside(const std::string& library) {
  const std::string folder = library.substr(0, library.rfind('/') + 1);
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return;
  while (const dirent* const entry = readdir(open)) {
    if (std::string_view(entry->d_name).starts_with(kBuiltins)) {
      (void)dlopen((folder + entry->d_name).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
  closedir(open);
}

// Null, and what the loader says of it.
void* OpenLibrary(const std::string& path, std::string& why) {
  if (path.find('/') != std::string::npos) LoadBuiltinsBeside(path);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    why = error == nullptr ? path : error;
  }
  return library;
}

absl::Status NoLibrary(const std::string& why) {
  return absl::UnavailableError(absl::StrCat("kernels made from a Source need NVIDIA's run-time compiler, ", kLibrary,
                                             ", which is not there (", why, "); ", kInstall));
}

template <class Function>
absl::Status FindSymbol(void* library, const char* symbol, Function*& function) {
  void* const found = dlsym(library, symbol);
  if (found == nullptr) {
    return absl::UnavailableError(absl::StrCat(kLibrary, " has no ", symbol, "; install NVRTC of CUDA 13"));
  }
  function = reinterpret_cast<Function*>(found);
  return absl::OkStatus();
}

}  // namespace

// One program, from its text to its image.
class Nvrtc::Compilation {
 public:
  Compilation(const Nvrtc& nvrtc, const WantedKernel& wanted, const std::function<bool()>& stop)
      : nvrtc_(nvrtc), wanted_(wanted), source_(*wanted.source), stop_(stop) {}
  ~Compilation() {
    if (program_ != nullptr) (void)nvrtc_.destroy_program_(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  absl::StatusOr<Result> Make() {
    PENSTOCK_RETURN_IF_ERROR(Create());
    const std::vector<std::string> options = OptionsOf(wanted_);
    std::vector<const char*> argv;
    for (const std::string& option : options) argv.push_back(option.c_str());
    const int code = nvrtc_.compile_program_(program_, static_cast<int>(argv.size()), argv.data());
    if (stopped_.load()) return absl::CancelledError(absl::StrCat("compiling ", TextOfKernel(), " was stopped"));
    std::string log = Log();
    if (code != kDone) return DoesNotCompile(code, log);
    Result result;
    result.log = std::move(log);
    PENSTOCK_RETURN_IF_ERROR(TakeImage(result.kernel));
    return result;
  }

 private:
  absl::Status Create() {
    std::vector<const char*> texts, names;
    for (const SourceHeader& header : source_.options.headers) {
      texts.push_back(header.text.c_str());
      names.push_back(header.name.c_str());
    }
    PENSTOCK_RETURN_IF_ERROR(Check(nvrtc_.create_program_(&program_, source_.text.c_str(), source_.options.file.c_str(),
                                                          static_cast<int>(texts.size()), texts.data(), names.data()),
                                   "taking its text"));
    PENSTOCK_RETURN_IF_ERROR(Check(nvrtc_.add_name_expression_(program_, source_.kernel.c_str()), "taking its name"));
    return Check(nvrtc_.set_flow_callback_(program_, &MayGoOn, this), "making it stoppable");
  }
  // After it has returned 1 it returns 1 again, as NVRTC demands. NVRTC also calls it on its own threads
  // (--split-compile); there it asks nothing and repeats the last answer.
  static int MayGoOn(void* self, void*) {
    auto& compilation = *static_cast<Compilation*>(self);
    if (compilation.stopped_.load()) return 1;
    if (std::this_thread::get_id() != compilation.thread_ || !compilation.stop_()) return 0;
    compilation.stopped_.store(true);
    return 1;
  }

  absl::Status TakeImage(KernelImage& kernel) {
    const char* symbol = nullptr;
    PENSTOCK_RETURN_IF_ERROR(
        Check(nvrtc_.get_lowered_name_(program_, source_.kernel.c_str(), &symbol), "looking up its symbol"));
    kernel.symbol = symbol;  // the program's
    size_t size = 0;
    PENSTOCK_RETURN_IF_ERROR(Check(nvrtc_.get_image_size_(program_, &size), "asking for the image"));
    if (size == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(TextOfKernel(),
                       " gives no image for a device, by its options; name an architecture of devices "
                       "(sm_90), or none, and leave out options for intermediate code"));
    }
    kernel.image.resize(size);
    return Check(nvrtc_.get_image_(program_, kernel.image.data()), "taking the image");
  }

  std::string Log() {
    size_t size = 0;  // with a null character at its end
    if (nvrtc_.get_log_size_(program_, &size) != kDone || size <= 1) return "";
    std::string log(size, '\0');
    if (nvrtc_.get_log_(program_, log.data()) != kDone) return "";
    log.resize(size - 1);
    while (!log.empty() && log.back() == '\n') log.pop_back();
    return log;
  }

  // The log is last, since it has lines of its own.
  absl::Status DoesNotCompile(int code, const std::string& log) {
    std::string shown = log.empty() ? nvrtc_.get_error_string_(code) : log.substr(0, kMostLog);
    if (log.size() > kMostLog) absl::StrAppend(&shown, "\n(", log.size() - kMostLog, " more bytes)");
    const absl::Status failed = Check(code, "compiling it");
    if (failed.code() != absl::StatusCode::kInternal || code == kInternalError) {  // not the source's fault
      return absl::Status(failed.code(), absl::StrCat(failed.message(), "; it says:\n", shown));
    }
    return absl::InvalidArgumentError(absl::StrCat(TextOfKernel(), " does not compile for ", wanted_.architecture,
                                                   "; NVRTC ", nvrtc_.version_, " says:\n", shown));
  }
  absl::Status Check(int code, const char* what) {
    if (code == kDone) return absl::OkStatus();
    const std::string failed = absl::StrCat("NVRTC ", nvrtc_.version_, ", ", what, ": ", nvrtc_.get_error_string_(code),
                                            "; in ", TextOfKernel());
    if (code == kOutOfMemory) return absl::ResourceExhaustedError(failed);
    if (code == kNoBuiltins) return absl::UnavailableError(absl::StrCat(failed, "; ", kInstall));
    return absl::InternalError(failed);
  }
  std::string TextOfKernel() const { return "kernel '" + source_.kernel + "' of " + source_.options.file; }

  const Nvrtc& nvrtc_;
  const WantedKernel& wanted_;
  const Source::Parts& source_;
  const std::function<bool()>& stop_;
  const std::thread::id thread_ = std::this_thread::get_id();  // that asks stop_
  Program program_ = nullptr;
  std::atomic<bool> stopped_{false};  // whether stop_ has ended it
};

absl::Status Nvrtc::Find(void* library) {
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcGetErrorString", get_error_string_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcVersion", get_version_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcCreateProgram", create_program_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcDestroyProgram", destroy_program_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcCompileProgram", compile_program_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcGetCUBINSize", get_image_size_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcGetCUBIN", get_image_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcGetProgramLogSize", get_log_size_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcGetProgramLog", get_log_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcAddNameExpression", add_name_expression_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcGetLoweredName", get_lowered_name_));
  PENSTOCK_RETURN_IF_ERROR(FindSymbol(library, "nvrtcSetFlowCallback", set_flow_callback_));
  int major = 0, minor = 0;
  if (get_version_(&major, &minor) != kDone) {
    return absl::UnavailableError(absl::StrCat(kLibrary, " does not say its version; install NVRTC of CUDA 13"));
  }
  version_ = absl::StrCat(major, ".", minor);
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(get_version_), &found) != 0) path_ = found.dli_fname;
  build_ = BuildOfNvrtc(path_, version_);
  return absl::OkStatus();
}

absl::StatusOr<Nvrtc> Nvrtc::Load(const std::vector<std::string>& paths) {
  std::string reasons;
  absl::Status other;  // of a library that is there
  for (const std::string& path : paths) {
    std::string why;
    if (void* const library = OpenLibrary(path, why); library != nullptr) {
      Nvrtc nvrtc;
      other = nvrtc.Find(library);
      if (other.ok()) return nvrtc;
    } else {
      absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", why);
    }
  }
  return other.ok() ? NoLibrary(reasons) : other;
}

absl::StatusOr<const Nvrtc*> Nvrtc::Get() {
  static base::Mutex mu;  // held while the library is loaded, once a process
  static const Nvrtc* loaded = nullptr;  // never freed
  base::MutexLock lock(mu);
  if (loaded != nullptr) return loaded;
  PENSTOCK_ASSIGN_OR_RETURN(Nvrtc found, Load(UsualPaths()));
  loaded = new Nvrtc(std::move(found));
  return loaded;
}

absl::StatusOr<Nvrtc::Result> Nvrtc::Compile(const WantedKernel& wanted, const std::function<bool()>& stop) const {
  return Compilation(*this, wanted, stop).Make();
}

}  // namespace penstock::jit

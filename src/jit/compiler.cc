#include "src/jit/compiler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/mutex.h"
#include "src/base/status.h"
#include "src/base/thread.h"
#include "src/jit/cache.h"
#include "src/jit/installed_nvrtc.h"
#include "src/jit/nvrtc.h"

namespace penstock::jit {
namespace {

constexpr size_t kMostInMemory = size_t{64} << 20;  // bytes of images that the process remembers
constexpr auto kLookAgain = std::chrono::milliseconds(20);

thread_local bool telling = false;  // whether a `tell` of CompileHooks runs on this thread

std::atomic<int64_t> compiled_sources{0}, sources_from_disk{0};  // CompileCounts

// What the process has compiled, so that equal sources are compiled once.
class KnownKernels {
 public:
  static KnownKernels& Get() {
    static auto* const known = new KnownKernels;  // never destroyed: threads may still use it at exit
    return *known;
  }

  // The kernel, which `make` makes unless it is known; a thread that finds another one making it waits, until `stop`.
  absl::StatusOr<SharedImage> GetOr(const Digest& key, const std::function<bool()>& stop,
                                    const std::function<absl::StatusOr<KernelImage>()>& make) {
    SharedImage known;
    while (!Begin(key, known)) {
      if (stop()) return absl::CancelledError("waiting for a kernel that another thread compiles was stopped");
    }
    if (known != nullptr) return known;
    Making making(*this, key);
    PENSTOCK_ASSIGN_OR_RETURN(KernelImage made, make());
    return making.image = std::make_shared<const KernelImage>(std::move(made));
  }

  void Forget() {
    base::MutexLock lock(mu_);
    MakeRoom(kMostInMemory + 1);
  }

 private:
  // While this thread makes a kernel; it is over even if that throws.
  struct Making {
    Making(KnownKernels& of, const Digest& of_key) : known(of), key(of_key) {}
    ~Making() { known.End(key, image); }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

    KnownKernels& known;
    const Digest& key;
    SharedImage image;  // null until it is made
  };

  // Returns whether this thread need not wait: the kernel is known, or this thread is to make it. Else it has waited.
  bool Begin(const Digest& key, SharedImage& known) {
    base::MutexLock lock(mu_);
    const auto [at, is_new] = kernels_.try_emplace(key);
    known = at->second;
    if (is_new || known != nullptr) return true;
    changed_.WaitUntil(mu_, std::chrono::steady_clock::now() + kLookAgain);
    return false;
  }
  // What this thread was to make is there, or null: it could not be made.
  void End(const Digest& key, const SharedImage& image) {
    base::MutexLock lock(mu_);
    if (image != nullptr) MakeRoom(image->image.size());
    const auto at = kernels_.find(key);
    if (image != nullptr) at->second = image;
    else kernels_.erase(at);
    changed_.NotifyAll();
  }
  // Forgets all if there would be too much; what executables use, they keep.
  void MakeRoom(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    bytes_ += bytes;
    if (bytes_ <= kMostInMemory) return;
    std::erase_if(kernels_, [](const auto& known) { return known.second != nullptr; });
    bytes_ = std::min(bytes, kMostInMemory);
  }

  base::Mutex mu_;
  base::CondVar changed_;  // a kernel has been made, or could not be
  std::map<Digest, SharedImage> kernels_ ABSL_GUARDED_BY(mu_);  // null while a thread makes it
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// One call of CompileSources.
class CompileBatch {
 public:
  CompileBatch(const std::vector<WantedKernel>& wanted, const CompileHooks& hooks)
      : wanted_(wanted), hooks_(hooks), results_(wanted.size(), absl::UnknownError("")) {}

  // Also if Run throws.
  ~CompileBatch() {
    stopped_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  CompileBatch(const CompileBatch&) = delete;
  CompileBatch& operator=(const CompileBatch&) = delete;

  absl::StatusOr<std::vector<absl::StatusOr<SharedImage>>> Run() {
    OpenCache();
    const size_t most = std::max(std::thread::hardware_concurrency(), 1u);
    threads_.reserve(std::min(wanted_.size(), most));
    for (size_t i = 1; i < std::min(wanted_.size(), most); ++i) {
      try {
        threads_.push_back(base::StartThread("ps-compile", [this] { Work([this] { return IsStopped(); }); }));
      } catch (const std::system_error&) {
        break;  // this thread does what others do not
      }
    }
    Work([this] { return MayStop(); });
    WaitForOthers();
    if (cache_.has_value() && kept_.load()) cache_->Shrink();
    base::MutexLock lock(mu_);
    if (!told_.ok()) return told_;
    return std::move(results_);
  }

 private:
  void OpenCache() {
    const std::optional<std::string> folder = Cache::FolderByEnvironment();
    if (!folder) return;
    absl::StatusOr<Cache> cache = Cache::Open(*folder);
    if (cache.ok()) {
      cache_.emplace(*std::move(cache));
      return;
    }
    static std::atomic<bool> warned{false};  // once a process
    if (warned.exchange(true)) return;
    Log(LogLevel::kWarning, absl::StrCat("compiled kernels are not kept for the next process: ",
                                         cache.status().message(), " (PENSTOCK_JIT_CACHE names another folder)"));
  }

  void Work(const std::function<bool()>& stop) {
    for (size_t i = next_.fetch_add(1); i < wanted_.size(); i = next_.fetch_add(1)) {
      absl::StatusOr<SharedImage> made = MakeIfItFits(wanted_[i], stop);
      base::MutexLock lock(mu_);
      results_[i] = std::move(made);
      ++done_;
      changed_.NotifyAll();
    }
  }

  absl::StatusOr<SharedImage> MakeIfItFits(const WantedKernel& wanted, const std::function<bool()>& stop) {
    try {
      if (stop()) return absl::CancelledError("compiling was stopped");
      std::string warnings;
      absl::StatusOr<SharedImage> made = Make(wanted, stop, warnings);
      // The warning is logged after the entry has ended, since the hook may compile the same source.
      if (!warnings.empty()) {
        Log(LogLevel::kWarning, absl::StrCat("NVRTC of kernel '", wanted.source->kernel, "': ", warnings));
      }
      return made;
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("there is no memory to compile a source; free some host memory");
    }
  }

  absl::StatusOr<SharedImage> Make(const WantedKernel& wanted, const std::function<bool()>& stop,
                                   std::string& warnings) {
    if (!KeyTellsAll(*wanted.source)) {
      PENSTOCK_ASSIGN_OR_RETURN(KernelImage made, Compile(wanted, stop, warnings));
      return std::make_shared<const KernelImage>(std::move(made));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const std::string build, BuildOfInstalled());
    const Digest key = KeyOf(wanted, build);
    return KnownKernels::Get().GetOr(key, stop, [&]() -> absl::StatusOr<KernelImage> {
      if (cache_) {
        if (std::optional<KernelImage> kept = cache_->Find(key)) {
          sources_from_disk.fetch_add(1);
          return *std::move(kept);
        }
      }
      PENSTOCK_ASSIGN_OR_RETURN(KernelImage made, Compile(wanted, stop, warnings));
      if (cache_) Keep(*cache_, wanted, build, made);
      return made;
    });
  }

  // Under the build that has compiled it, `noted` or another one that the note did not know of.
  void Keep(const Cache& cache, const WantedKernel& wanted, const std::string& noted, const KernelImage& made) {
    const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Get();
    if (!nvrtc.ok()) return;
    if ((*nvrtc)->build() != noted) cache.WriteNote(NoteOnNvrtc((*nvrtc)->path(), (*nvrtc)->build()));
    cache.Keep(KeyOf(wanted, (*nvrtc)->build()),
               {.kernel = wanted.source->kernel, .architecture = ArchitectureIn(OptionsOf(wanted))}, made);
    kept_.store(true);
  }

  // Which the cache knows, unless another one may have been installed.
  absl::StatusOr<std::string> BuildOfInstalled() {
    const std::optional<std::string> note = cache_ ? cache_->ReadNote() : std::nullopt;
    std::optional<std::string> noted = note ? BuildInNote(*note) : std::nullopt;
    if (noted) return *std::move(noted);
    PENSTOCK_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Get());
    if (cache_) cache_->WriteNote(NoteOnNvrtc(nvrtc->path(), nvrtc->build()));
    return nvrtc->build();
  }

  static absl::StatusOr<KernelImage> Compile(const WantedKernel& wanted, const std::function<bool()>& stop,
                                             std::string& warnings) {
    PENSTOCK_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Get());
    compiled_sources.fetch_add(1);
    PENSTOCK_ASSIGN_OR_RETURN(Nvrtc::Result result, nvrtc->Compile(wanted, stop));
    warnings = std::move(result.log);
    return std::move(result.kernel);
  }

  void Log(LogLevel level, std::string_view text) const {
    if (hooks_.log) hooks_.log(level, text);
  }

  // On the calling thread: lets it tell, and stop all.
  bool MayStop() {
    if (!hooks_.tell || IsStopped()) return IsStopped();
    size_t done = 0;
    {
      base::MutexLock lock(mu_);
      done = done_;
    }
    absl::Status told = Tell(done);
    if (told.ok()) return false;
    base::MutexLock lock(mu_);
    told_ = std::move(told);
    stopped_.store(true);
    return true;
  }
  // It does not throw, since NVRTC's callback may be what calls it.
  absl::Status Tell(size_t done) {
    telling = true;
    absl::Status told;
    try {
      told = hooks_.tell(done, wanted_.size());
    } catch (const std::bad_alloc&) {
      told = absl::ResourceExhaustedError("there is no memory to tell how far compiling has come");
    }
    telling = false;
    return told;
  }
  bool IsStopped() const { return stopped_.load(); }

  void WaitForOthers() {
    while (true) {
      {
        base::MutexLock lock(mu_);
        if (done_ == wanted_.size()) return;
        changed_.WaitUntil(mu_, std::chrono::steady_clock::now() + kLookAgain);
      }
      (void)MayStop();
    }
  }

  const std::vector<WantedKernel>& wanted_;
  const CompileHooks& hooks_;
  std::optional<Cache> cache_;  // none: kernels are not kept
  std::atomic<size_t> next_{0};  // the kernel that nobody has begun
  std::atomic<bool> stopped_{false};  // whether `tell` has ended the call
  base::Mutex mu_;
  base::CondVar changed_;  // a kernel is done
  std::vector<absl::StatusOr<SharedImage>> results_ ABSL_GUARDED_BY(mu_);
  size_t done_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status told_ ABSL_GUARDED_BY(mu_);  // by `tell`
  std::atomic<bool> kept_{false};  // whether the cache has more than before
  std::vector<std::thread> threads_;  // of this call
};

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<SharedImage>>> CompileSources(const std::vector<WantedKernel>& wanted,
                                                                        const CompileHooks& hooks) {
  if (wanted.empty()) return std::vector<absl::StatusOr<SharedImage>>();
  if (telling) {
    return absl::FailedPreconditionError(
        "a function that is told of the progress of a compilation cannot compile sources itself, because NVRTC waits "
        "for "
        "it; compile them before or afterwards");
  }
  return CompileBatch(wanted, hooks).Run();
}

CompileCounts CountsOfCompiled() { return {compiled_sources.load(), sources_from_disk.load()}; }

void ForgetCompiled() { KnownKernels::Get().Forget(); }

}  // namespace penstock::jit

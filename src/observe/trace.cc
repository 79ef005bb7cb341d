// Trace: the collected spans and the file they are written to. The format is chrome_json.cc's.
#include "penstock/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/mutex.h"
#include "src/observe/chrome_json.h"
#include "src/observe/interval_union.h"

namespace penstock {
namespace {

absl::Status FileError(int error, const std::string& path, const char* what) {
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat("trace file '", path, "': cannot ", what));
  return absl::Status(status.code(), absl::StrCat(status.message(), "; choose a path that can be written"));
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A name beside `path` that no other writer of this or another process has.
std::string TemporaryName(const std::string& path) {
  static std::atomic<int> serial{0};
  return absl::StrCat(path, ".", getpid(), ".", serial.fetch_add(1), ".tmp");
}

}  // namespace

struct Trace::Impl {
  using Engine = std::pair<int, SpanKind>;  // of which device
  explicit Impl(size_t most) : most_spans(most) {}
  const size_t most_spans;
  mutable base::Mutex mu;
  std::deque<Span> spans ABSL_GUARDED_BY(mu);
  std::map<Engine, observe::IntervalUnion> busy ABSL_GUARDED_BY(mu);
};

std::shared_ptr<Trace> Trace::Create(size_t most_spans) { return std::shared_ptr<Trace>(new Trace(most_spans)); }

Trace::Trace(size_t most_spans) : start_(std::chrono::steady_clock::now()), impl_(std::make_unique<Impl>(most_spans)) {}
Trace::~Trace() = default;

void Trace::Add(Span span) {
  base::MutexLock lock(impl_->mu);
  if (span.device >= 0) impl_->busy[{span.device, span.kind}].Add(span.begin_us, span.end_us);
  impl_->spans.push_back(std::move(span));
  if (impl_->spans.size() > impl_->most_spans) impl_->spans.pop_front();
}

std::vector<Span> Trace::spans() const {
  base::MutexLock lock(impl_->mu);
  return {impl_->spans.begin(), impl_->spans.end()};
}

double Trace::BusyMicros(int device, SpanKind kind) const {
  base::MutexLock lock(impl_->mu);
  const auto engine = impl_->busy.find({device, kind});
  return engine == impl_->busy.end() ? 0 : engine->second.length();
}

std::string Trace::ChromeJson() const { return observe::ChromeJson(spans()); }

absl::Status Trace::WriteChrome(const std::string& path) const {
  const std::string text = ChromeJson();
  const std::string temporary = TemporaryName(path);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return FileError(errno, path, "create it");
  const bool written = WriteAll(fd, text);
  const int write_error = errno;
  const bool closed = close(fd) == 0;
  int error = !written ? write_error : !closed ? errno : 0;
  const char* what = "write it";
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) {
    error = errno;
    what = "put it in place";
  }
  if (error == 0) return absl::OkStatus();
  unlink(temporary.c_str());
  return FileError(error, path, what);
}

}  // namespace penstock

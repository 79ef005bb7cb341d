// Trace: the collected spans, and the file to which they are written. chrome_json.cc has the format.
#include "penstock/trace.h"

#include <deque>
#include <map>
#include <utility>

#include "src/base/file.h"
#include "src/base/mutex.h"
#include "src/observe/chrome_json.h"
#include "src/observe/interval_union.h"

namespace penstock {

struct Trace::Impl {
  using Engine = std::pair<int, SpanKind>;  // the device and kind
  explicit Impl(size_t most) : most_spans(most) {}
  const size_t most_spans;
  mutable base::Mutex mu;
  std::deque<Span> spans ABSL_GUARDED_BY(mu);
  int64_t lost ABSL_GUARDED_BY(mu) = 0;
  std::map<Engine, observe::IntervalUnion> busy ABSL_GUARDED_BY(mu);
};

std::shared_ptr<Trace> Trace::Create(size_t most_spans) { return std::shared_ptr<Trace>(new Trace(most_spans)); }

Trace::Trace(size_t most_spans) : start_(std::chrono::steady_clock::now()), impl_(std::make_unique<Impl>(most_spans)) {}
Trace::~Trace() = default;

void Trace::Add(Span span) {  // NOLINT(performance-unnecessary-value-param): it is moved on
  base::MutexLock lock(impl_->mu);
  if (span.device >= 0) impl_->busy[{span.device, span.kind}].Add(span.begin_us, span.end_us);
  impl_->spans.push_back(std::move(span));
  if (impl_->spans.size() <= impl_->most_spans) return;
  impl_->spans.pop_front();
  ++impl_->lost;
}

std::vector<Span> Trace::spans() const {
  base::MutexLock lock(impl_->mu);
  return {impl_->spans.begin(), impl_->spans.end()};
}

int64_t Trace::lost_spans() const {
  base::MutexLock lock(impl_->mu);
  return impl_->lost;
}

double Trace::BusyMicros(int device, SpanKind kind) const {
  base::MutexLock lock(impl_->mu);
  const auto engine = impl_->busy.find({device, kind});
  return engine == impl_->busy.end() ? 0 : engine->second.length();
}

std::string Trace::ChromeJson() const { return observe::ChromeJson(spans()); }

absl::Status Trace::WriteChrome(const std::string& path) const {
  return base::WriteFile("trace file", path, ChromeJson());
}

}  // namespace penstock

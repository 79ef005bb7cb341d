// One span at a time.
#include "timeline.h"

#include <cmath>
#include <optional>

#include "stages.h"

namespace photos {
namespace {

std::optional<Step> StepOf(const penstock::Span& span) {
  switch (span.kind) {
    case penstock::SpanKind::kUpload: return Step::kUpload;
    case penstock::SpanKind::kDownload: return Step::kDownload;
    case penstock::SpanKind::kKernel: return Step::kCompute;
    case penstock::SpanKind::kHost:
      if (span.name == kDecodeSpan) return Step::kDecode;
      if (span.name == kEncodeSpan) return Step::kEncode;
      return std::nullopt;
    case penstock::SpanKind::kSubmit:
    case penstock::SpanKind::kWait:
    case penstock::SpanKind::kRun: return std::nullopt;
  }
  return std::nullopt;
}

int64_t ToNanos(double us) { return std::llround(1000 * us); }

}  // namespace

std::vector<Span> StepsOf(const std::vector<penstock::Span>& trace) {
  std::vector<Span> spans;
  spans.reserve(trace.size());
  for (const penstock::Span& span : trace) {
    const std::optional<Step> step = StepOf(span);
    if (!step) continue;
    const bool on_device = *step != Step::kDecode && *step != Step::kEncode;
    spans.push_back({*step, on_device ? span.device : 0, {ToNanos(span.begin_us), ToNanos(span.end_us)}});
  }
  return spans;
}

}  // namespace photos

// The trace event format, written by hand, since three kinds of events need no JSON library. See chrome_json.h.
#include "src/observe/chrome_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace penstock::observe {
namespace {

// Whole nanoseconds: times are rounded once, so spans that touch in the input touch in the output.
struct Event {
  const Span* span;
  int64_t begin, end;
};

// Spans of one track that are pairwise disjoint or nested.
struct Row {
  std::vector<const Event*> open;  // each nested in the one before
  std::vector<const Event*> events;
};

int64_t Nanoseconds(double us) { return std::isfinite(us) ? std::llround(std::clamp(us, -1e15, 1e15) * 1000) : 0; }

std::string Micros(int64_t ns) {
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  char text[40];
  std::snprintf(text, sizeof(text), "%s%llu.%03llu", ns < 0 ? "-" : "", static_cast<unsigned long long>(size / 1000),
                static_cast<unsigned long long>(size % 1000));
  return text;
}

// By track, then by begin, an outer span before the spans it contains.
bool Before(const Event& a, const Event& b) {
  return std::tie(a.span->device, a.span->track, a.begin, b.end) <
         std::tie(b.span->device, b.span->track, b.begin, a.end);
}

bool SameTrack(const Event& a, const Event& b) {
  return a.span->device == b.span->device && a.span->track == b.span->track;
}

// Expects events in the order of Before.
bool Fits(Row& row, const Event& event) {
  while (!row.open.empty() && row.open.back()->end <= event.begin) row.open.pop_back();
  return row.open.empty() || event.end <= row.open.back()->end;
}

std::vector<Row> RowsOf(const Event* begin, const Event* end) {
  std::vector<Row> rows;
  for (const Event* event = begin; event != end; ++event) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](Row& r) { return Fits(r, *event); });
    if (row == rows.end()) row = rows.insert(row, Row{});
    row->open.push_back(event);
    row->events.push_back(event);
  }
  return rows;
}

// Writes events, one per line, separated by commas.
class Writer {
 public:
  void Named(const char* what, int pid, int tid, const std::string& name) {
    Line(absl::StrCat(R"({"ph":"M","name":")", what, R"(","pid":)", pid, R"(,"tid":)", tid, R"(,"args":{"name":)",
                      JsonString(name), "}}"));
  }
  void SortIndex(const char* what, int pid, int tid, int index) {
    Line(absl::StrCat(R"({"ph":"M","name":")", what, R"(","pid":)", pid, R"(,"tid":)", tid, R"(,"args":{"sort_index":)",
                      index, "}}"));
  }
  void Complete(int pid, int tid, const Event& event) {
    const Span& span = *event.span;
    const std::string args = span.run < 0 ? "{}" : absl::StrCat(R"({"run":)", span.run, "}");
    Line(absl::StrCat(R"({"ph":"X","name":)", JsonString(span.name), R"(,"cat":")", KindName(span.kind), R"(","pid":)",
                      pid, R"(,"tid":)", tid, R"(,"ts":)", Micros(event.begin), R"(,"dur":)",
                      Micros(event.end - event.begin), R"(,"args":)", args, "}"));
  }
  std::string Finish() && {
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  void Line(const std::string& event) {
    text_ += first_ ? "\n" : ",\n";
    text_ += event;
    first_ = false;
  }

  bool first_ = true;
  std::string text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
};

// The length of the UTF-8 sequence at the start of `text` (RFC 3629, section 4), or 0 if there is none.
size_t Utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // The second byte reveals overlong forms, surrogates and values beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) >= 0x20) {
    out += c;
    return;
  }
  char escape[8];
  std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  out += escape;
}

}  // namespace

const char* KindName(SpanKind kind) {
  switch (kind) {
    case SpanKind::kUpload: return "upload";
    case SpanKind::kDownload: return "download";
    case SpanKind::kKernel: return "kernel";
    case SpanKind::kHost: return "host";
    case SpanKind::kSubmit: return "submit";
    case SpanKind::kWait: return "wait";
    case SpanKind::kRun: return "run";
  }
  return "other";
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (length == 1) {
      AppendEscaped(out, text[0]);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out += '"';
}

std::string ChromeJson(const std::vector<Span>& spans) {
  std::vector<Event> events;
  events.reserve(spans.size());
  for (const Span& span : spans) {
    const int64_t begin = Nanoseconds(span.begin_us);
    events.push_back({&span, begin, std::max(begin, Nanoseconds(span.end_us))});
  }
  // Equal events stay in the order in which they were added, since their spans lie in one array.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (Before(a, b) || Before(b, a)) return Before(a, b);
    return a.span < b.span;
  });

  Writer writer;
  int tid = 0, named_pid = -1;
  for (const Event *track = events.data(), *const end = track + events.size(); track != end;) {
    const Event* const next = std::find_if(track, end, [&](const Event& e) { return !SameTrack(e, *track); });
    const int device = track->span->device;
    const int pid = std::max(0, device + 1);
    if (pid != named_pid) {
      writer.Named("process_name", pid, 0, pid == 0 ? "host" : absl::StrCat("device ", device));
      writer.SortIndex("process_sort_index", pid, 0, pid);
      named_pid = pid;
    }
    int row_number = 0;
    for (const Row& row : RowsOf(track, next)) {
      ++tid;
      ++row_number;
      writer.Named("thread_name", pid, tid,
                   row_number == 1 ? track->span->track : absl::StrCat(track->span->track, " #", row_number));
      writer.SortIndex("thread_sort_index", pid, tid, tid);
      for (const Event* event : row.events) writer.Complete(pid, tid, *event);
    }
    track = next;
  }
  return std::move(writer).Finish();
}

}  // namespace penstock::observe

// The events of a trace; chrome_writer.cc writes them. See chrome_json.h.
#include "src/observe/chrome_json.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "src/observe/chrome_writer.h"
#include "src/observe/nested_rows.h"

namespace penstock::observe {
namespace {

struct Event {
  const Span* span;
  int64_t begin, end;
};

// By track, then by begin, an outer span before the spans it contains.
bool Before(const Event& a, const Event& b) {
  return std::tie(a.span->device, a.span->track, a.begin, b.end) <
         std::tie(b.span->device, b.span->track, b.begin, a.end);
}

bool SameTrack(const Event& a, const Event& b) {
  return a.span->device == b.span->device && a.span->track == b.span->track;
}

// The events of a track in rows, each to be a thread of its own.
std::vector<std::vector<const Event*>> RowsOf(const Event* begin, const Event* end) {
  NestedRows of;
  std::vector<std::vector<const Event*>> rows;
  for (const Event* event = begin; event != end; ++event) {
    const size_t row = of.RowOf(event->begin, event->end);
    if (row == rows.size()) rows.emplace_back();
    rows[row].push_back(event);
  }
  return rows;
}

}  // namespace

// RFC 3629, section 4.
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

namespace {

bool IsPlain(char c) { return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'; }

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
  while (true) {
    const auto plain = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsPlain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
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
    const int64_t begin = ChromeTime(span.begin_us);
    events.push_back({&span, begin, std::max(begin, ChromeTime(span.end_us))});
  }
  // Equal events stay in the order in which they were added, since their spans lie in one array.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (Before(a, b) || Before(b, a)) return Before(a, b);
    return a.span < b.span;
  });

  ChromeWriter writer;
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
    for (const std::vector<const Event*>& row : RowsOf(track, next)) {
      ++tid;
      ++row_number;
      writer.Named("thread_name", pid, tid,
                   row_number == 1 ? track->span->track : absl::StrCat(track->span->track, " #", row_number));
      writer.SortIndex("thread_sort_index", pid, tid, tid);
      for (const Event* event : row) {
        const Span& span = *event->span;
        const std::string args = span.run < 0 ? "{}" : absl::StrCat(R"({"run":)", span.run, "}");
        writer.Complete(pid, tid, span.name, KindName(span.kind), event->begin, event->end, args);
      }
    }
    track = next;
  }
  return std::move(writer).Finish();
}

}  // namespace penstock::observe

// The trace event format, written by hand, since a few kinds of events need no JSON library.
#include "src/observe/chrome_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "src/observe/chrome_json.h"

namespace penstock::observe {

int64_t ChromeTime(double us) { return std::isfinite(us) ? std::llround(std::clamp(us, -1e15, 1e15) * 1000) : 0; }

void ChromeWriter::Named(std::string_view what, int64_t pid, int64_t tid, std::string_view name) {
  Begin('M', what, "", pid, tid);
  Member("args", (what == "process_labels" ? R"({"labels":)" : R"({"name":)") + JsonString(name) + "}");
  End();
}

void ChromeWriter::SortIndex(std::string_view what, int64_t pid, int64_t tid, int64_t index) {
  Begin('M', what, "", pid, tid);
  Member("args", R"({"sort_index":)" + std::to_string(index) + "}");
  End();
}

void ChromeWriter::Complete(int64_t pid, int64_t tid, std::string_view name, std::string_view category, int64_t begin,
                            int64_t end, std::string_view args) {
  Begin('X', name, category, pid, tid);
  Time("ts", begin);
  Time("dur", end - begin);
  Member("args", args);
  End();
}

void ChromeWriter::Flow(char phase, int64_t pid, int64_t tid, std::string_view name, int64_t id, int64_t time) {
  Begin(phase, name, name, pid, tid);
  Member("id", id);
  Time("ts", time);
  if (phase == 'f') Member("bp", R"("e")");  // else the arrow would end at the event that begins next
  End();
}

void ChromeWriter::Counter(int64_t pid, std::string_view name, int64_t time, std::string_view args) {
  Begin('C', name, "", pid, 0);
  Time("ts", time);
  Member("args", args);
  End();
}

std::string ChromeWriter::Finish() && {
  text_ += "\n]}\n";
  return std::move(text_);
}

void ChromeWriter::Begin(char phase, std::string_view name, std::string_view category, int64_t pid, int64_t tid) {
  text_ += first_ ? "\n" : ",\n";
  first_ = false;
  text_ += R"({"ph":")";
  text_ += phase;
  text_ += '"';
  Member("name", JsonString(name));
  if (!category.empty()) Member("cat", JsonString(category));
  Member("pid", pid);
  Member("tid", tid);
}

void ChromeWriter::Member(std::string_view name, std::string_view json) {
  text_ += ",\"";
  text_ += name;
  text_ += "\":";
  text_ += json;
}

void ChromeWriter::Member(std::string_view name, int64_t number) { Member(name, std::to_string(number)); }

void ChromeWriter::Time(std::string_view name, int64_t ns) {
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  char text[40];
  std::snprintf(text, sizeof(text), "%s%llu.%03llu", ns < 0 ? "-" : "", static_cast<unsigned long long>(size / 1000),
                static_cast<unsigned long long>(size % 1000));
  Member(name, std::string_view(text));
}

}  // namespace penstock::observe

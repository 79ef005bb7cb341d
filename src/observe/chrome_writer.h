// ChromeWriter: writes events of the trace event format, one a line. chrome_json.h names the format.
//
// Times are in nanoseconds, which it writes as microseconds. Names are escaped; args are JSON already.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::observe {

// The nearest nanosecond, within 31 years. Times that are rounded once still touch where they touched.
int64_t ChromeTime(double us);

class ChromeWriter {
 public:
  // What viewers show of a process or thread: `what` is "process_name", "process_labels" or "thread_name".
  void Named(std::string_view what, int64_t pid, int64_t tid, std::string_view name);
  // Where it stands among others: `what` is "process_sort_index" or "thread_sort_index".
  void SortIndex(std::string_view what, int64_t pid, int64_t tid, int64_t index);
  void Complete(int64_t pid, int64_t tid, std::string_view name, std::string_view category, int64_t begin, int64_t end,
                std::string_view args);
  // The begin (`phase` is 's') or end ('f') of an arrow, which viewers tie to the event around that time.
  void Flow(char phase, int64_t pid, int64_t tid, std::string_view name, int64_t id, int64_t time);
  // The values of a counter of the process from that time on.
  void Counter(int64_t pid, std::string_view name, int64_t time, std::string_view args);

  std::string Finish() &&;

 private:
  void Begin(char phase, std::string_view name, std::string_view category, int64_t pid, int64_t tid);
  void Member(std::string_view name, std::string_view json);
  void Member(std::string_view name, int64_t number);
  void Time(std::string_view name, int64_t ns);
  void End() { text_ += '}'; }

  bool first_ = true;
  std::string text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
};

}  // namespace penstock::observe

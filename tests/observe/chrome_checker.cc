#include "tests/observe/chrome_checker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

namespace penstock::chrome_checker {
namespace {

using nlohmann::json;
using Thread = std::pair<int64_t, int64_t>;  // pid and tid

struct Slice {
  int64_t begin, end;  // nanoseconds
};

struct ArrowEnd {
  Thread thread;
  int64_t time;
};

class Checker {
 public:
  std::vector<std::string> Check(std::string_view text) {
    const json trace = json::parse(text.begin(), text.end(), nullptr, false);
    if (!trace.is_object()) return {"no JSON object"};
    const auto events = trace.find("traceEvents");
    if (events == trace.end() || !events->is_array()) return {"no array traceEvents"};
    if (const auto unit = trace.find("displayTimeUnit"); unit != trace.end() && *unit != "ms" && *unit != "ns") {
      Wrong("displayTimeUnit", *unit);
    }
    for (const json& event : *events) CheckEvent(event);
    CheckNames();
    for (auto& [thread, slices] : slices_) CheckNesting(thread, slices);
    CheckArrows();
    return std::move(mistakes_);
  }

 private:
  void Wrong(const std::string& what, const json& where) {
    if (mistakes_.size() < 5)
      mistakes_.push_back(what + ": " + where.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  static bool Has(const json& event, const char* name, bool (json::*is)() const noexcept) {
    const auto member = event.find(name);
    return member != event.end() && ((*member).*is)();
  }
  static int64_t Nanoseconds(const json& us) { return std::llround(us.get<double>() * 1000); }

  void CheckEvent(const json& event) {
    if (!event.is_object() || !Has(event, "ph", &json::is_string) || !Has(event, "name", &json::is_string) ||
        !Has(event, "pid", &json::is_number_integer) || !Has(event, "tid", &json::is_number_integer)) {
      return Wrong("no phase, name, process or thread", event);
    }
    const Thread thread{event["pid"].get<int64_t>(), event["tid"].get<int64_t>()};
    const std::string phase = event["ph"];
    if (phase == "M") return CheckMetadata(event, thread);
    if (!Has(event, "ts", &json::is_number)) return Wrong("no time", event);
    if (phase == "X") return CheckSlice(event, thread);
    if (phase == "s" || phase == "f") return CheckArrowEnd(event, thread, phase == "s");
    if (phase == "C") return CheckCounter(event, thread);
    Wrong("an unexpected phase", event);
  }

  void CheckMetadata(const json& event, const Thread& thread) {
    if (!Has(event, "args", &json::is_object)) return Wrong("metadata without args", event);
    const std::string name = event["name"];
    const json& args = event["args"];
    if (name == "process_name" || name == "thread_name") {
      if (!Has(args, "name", &json::is_string)) Wrong("no name", event);
      const bool is_new =
          name == "process_name" ? processes_.insert(thread.first).second : threads_.insert(thread).second;
      if (!is_new) Wrong("named twice", event);
    } else if (name == "process_sort_index" || name == "thread_sort_index") {
      if (!Has(args, "sort_index", &json::is_number)) Wrong("no sort_index", event);
    } else if (name == "process_labels") {
      if (!Has(args, "labels", &json::is_string)) Wrong("no labels", event);
    } else {
      Wrong("unknown metadata", event);
    }
  }

  void CheckSlice(const json& event, const Thread& thread) {
    if (!Has(event, "dur", &json::is_number) || event["dur"].get<double>() < 0 ||
        !Has(event, "cat", &json::is_string) || !Has(event, "args", &json::is_object)) {
      return Wrong("a slice lacks a length, category or args", event);
    }
    const int64_t begin = Nanoseconds(event["ts"]);
    slices_[thread].push_back({begin, begin + Nanoseconds(event["dur"])});
  }

  void CheckArrowEnd(const json& event, const Thread& thread, bool is_begin) {
    if (!Has(event, "cat", &json::is_string) || !event.contains("id")) return Wrong("no category or id", event);
    // Otherwise the arrow ends at the slice that begins next.
    if (!is_begin && event.value("bp", "") != "e") return Wrong("the end of an arrow is not in a slice", event);
    auto& ends = arrows_[{event["cat"], event["name"], event["id"].dump()}];
    ends[is_begin ? 0 : 1].push_back({thread, Nanoseconds(event["ts"])});
  }

  void CheckCounter(const json& event, const Thread& thread) {
    if (!Has(event, "args", &json::is_object) || event["args"].empty()) return Wrong("a counter without values", event);
    for (const auto& [series, value] : event["args"].items()) {
      if (!value.is_number()) Wrong("a counter's value is no number", event);
    }
    counting_.insert(thread.first);
    if (!counted_.insert({thread.first, event["name"], Nanoseconds(event["ts"])}).second) {
      Wrong("a counter has two values at once", event);
    }
  }

  void CheckNames() {
    for (const auto& [thread, slices] : slices_) {
      if (threads_.count(thread) == 0) Wrong("no name of thread", thread);
      if (processes_.count(thread.first) == 0) Wrong("no name of process", thread.first);
    }
    for (const int64_t pid : counting_) {
      if (processes_.count(pid) == 0) Wrong("no name of the counter's process", pid);
    }
  }

  void CheckNesting(const Thread& thread, std::vector<Slice>& slices) {
    std::sort(slices.begin(), slices.end(),
              [](const Slice& a, const Slice& b) { return std::tie(a.begin, b.end) < std::tie(b.begin, a.end); });
    std::vector<Slice> open;
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (!open.empty() && open.back().end < slice.end) {
        Wrong("slices overlap in part", {thread, open.back().begin, open.back().end, slice.begin, slice.end});
      }
      open.push_back(slice);
    }
  }

  // Slices that touch: the time is in the one that begins there, or in one of no length.
  bool InSlice(const ArrowEnd& end) const {
    const auto slices = slices_.find(end.thread);
    if (slices == slices_.end()) return false;
    // Sorted by begin; slices around a time are not next to each other if others are nested before it.
    auto at = std::upper_bound(slices->second.begin(), slices->second.end(), end.time,
                               [](int64_t time, const Slice& slice) { return time < slice.begin; });
    while (at != slices->second.begin()) {
      --at;
      if (end.time < at->end || (end.time == at->begin && end.time == at->end)) return true;
    }
    return false;
  }

  void CheckArrows() {
    for (const auto& [key, ends] : arrows_) {
      const json of = {std::get<0>(key), std::get<1>(key), std::get<2>(key)};
      if (ends[0].size() != 1 || ends[1].size() != 1) {
        Wrong("an arrow does not begin and end once", of);
        continue;
      }
      if (ends[1][0].time < ends[0][0].time) Wrong("an arrow goes back in time", of);
      if (!InSlice(ends[0][0])) Wrong("an arrow begins in no slice", of);
      if (!InSlice(ends[1][0])) Wrong("an arrow ends in no slice", of);
    }
  }

  std::vector<std::string> mistakes_;
  std::set<int64_t> processes_, counting_;
  std::set<Thread> threads_;
  std::map<Thread, std::vector<Slice>> slices_;
  std::map<std::tuple<std::string, std::string, std::string>, std::array<std::vector<ArrowEnd>, 2>> arrows_;
  std::set<std::tuple<int64_t, std::string, int64_t>> counted_;
};

}  // namespace

std::vector<std::string> MistakesIn(std::string_view json) { return Checker().Check(json); }

}  // namespace penstock::chrome_checker

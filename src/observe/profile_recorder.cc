#include "src/observe/profile_recorder.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <utility>

#include "src/observe/numbered_path.h"

namespace penstock::observe {
namespace {

// Calls `add` with each span that `wants` says, with the times of another trace.
template <class Wants, class Add>
void ForEachSpan(const Trace& from, const Trace& times, const Wants& wants, const Add& add) {
  const auto now = std::chrono::steady_clock::now();
  const double later = times.ToMicros(now) - from.ToMicros(now);
  for (Span& span : from.spans()) {
    if (!wants(span)) continue;
    span.begin_us += later;
    span.end_us += later;
    add(std::move(span));
  }
}

}  // namespace

void ProfileRecorder::Start(int64_t most_spans, const std::string& path) {
  records_all_ = most_spans > 0 || !path.empty();
  if (most_spans > 0) trace_ = Trace::Create(static_cast<size_t>(most_spans));
  base::MutexLock lock(mu_);
  if (!path.empty()) path_ = NumberedPath(path);
}

void ProfileRecorder::Add(Profile::Graph graph, const ProfiledGraph& source, const std::shared_ptr<Trace>& trace) {
  base::MutexLock lock(mu_);
  nodes_ += graph.nodes.size() + 1;
  entries_.push_back({std::move(graph), &source, trace});
  LetGo();
}

void ProfileRecorder::End(int64_t executable) {
  try {  // a destructor calls this
    KeepSpans(executable);
  } catch (const std::bad_alloc&) {  // then they are lost
  }
  base::MutexLock lock(mu_);
  const auto entry = Find(executable);
  if (entry == entries_.end()) return;
  try {
    entry->source->UpdateProfile(entry->graph);
  } catch (const std::bad_alloc&) {  // then it is as it was when it was last asked
  }
  entry->source = nullptr;
  LetGo();
}

// Until the executable has ended, Take ignores the copies.
void ProfileRecorder::KeepSpans(int64_t executable) {
  std::shared_ptr<Trace> own;
  {
    base::MutexLock lock(mu_);
    const auto entry = Find(executable);
    if (entry != entries_.end()) own = entry->trace.lock();
  }
  if (own == nullptr || own == trace_) return;
  ForEachSpan(
      *own, *trace_, [executable](const Span& span) { return span.executable == executable; },
      [this](Span span) { trace_->Add(std::move(span)); });
}

std::deque<ProfileRecorder::Entry>::iterator ProfileRecorder::Find(int64_t executable) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [executable](const Entry& entry) { return entry.graph.executable == executable; });
}

// Keeps all that still exist.
void ProfileRecorder::LetGo() {
  for (auto entry = entries_.begin(); nodes_ > most_nodes_ && entry != entries_.end();) {
    if (entry->source != nullptr) {
      ++entry;
      continue;
    }
    nodes_ -= entry->graph.nodes.size() + 1;
    ++lost_;
    entry = entries_.erase(entry);
  }
}

Profile ProfileRecorder::Take(const std::vector<Device>& devices) {
  Profile profile;
  profile.devices = devices;
  std::vector<std::shared_ptr<Trace>> traces{trace_};
  std::map<int64_t, const Trace*> trace_of;  // by the executable
  {
    base::MutexLock lock(mu_);
    profile.lost_graphs = lost_;
    for (Entry& entry : entries_) {
      std::shared_ptr<Trace> trace = trace_;
      if (entry.source != nullptr) {
        entry.source->UpdateProfile(entry.graph);
        if (std::shared_ptr<Trace> own = entry.trace.lock()) trace = std::move(own);
      }
      profile.graphs.push_back(entry.graph);
      trace_of[entry.graph.executable] = trace.get();
      if (std::find(traces.begin(), traces.end(), trace) == traces.end()) traces.push_back(std::move(trace));
    }
  }
  for (const std::shared_ptr<Trace>& trace : traces) {
    profile.lost_spans += trace->lost_spans();
    const auto wants = [&](const Span& span) {
      const auto of = trace_of.find(span.executable);
      return span.executable < 0 || (of != trace_of.end() && of->second == trace.get());
    };
    ForEachSpan(*trace, *trace_, wants, [&](Span span) { profile.spans.push_back(std::move(span)); });
  }
  profile.length_us = trace_->Now();
  profile.pipelines = pipelines_.Take(profile.length_us);
  return profile;
}

std::string ProfileRecorder::TakePath() {
  base::MutexLock lock(mu_);
  return std::exchange(path_, "");
}

}  // namespace penstock::observe

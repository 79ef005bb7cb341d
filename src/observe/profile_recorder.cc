#include "src/observe/profile_recorder.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <utility>

namespace penstock::observe {
namespace {

// A profile for each runtime of the process: the second is "app.profile.2".
std::string Numbered(const std::string& path) {
  static base::Mutex mu;  // of `taken`
  static auto& taken = *new std::map<std::string, int>;
  base::MutexLock lock(mu);
  const int number = ++taken[path];
  return number == 1 ? path : path + "." + std::to_string(number);
}

// The spans of `graphs`, and the application's own, with the times of another trace.
void AddSpans(const Trace& from, const std::set<int64_t>& graphs, const Trace& times, std::vector<Span>& to) {
  const auto now = std::chrono::steady_clock::now();
  const double later = times.ToMicros(now) - from.ToMicros(now);
  for (Span& span : from.spans()) {
    if (span.executable >= 0 && graphs.count(span.executable) == 0) continue;
    span.begin_us += later;
    span.end_us += later;
    to.push_back(std::move(span));
  }
}

}  // namespace

void ProfileRecorder::Start(int64_t most_spans, const std::string& path) {
  records_all_ = most_spans > 0 || !path.empty();
  if (most_spans > 0) trace_ = Trace::Create(static_cast<size_t>(most_spans));
  base::MutexLock lock(mu_);
  if (!path.empty()) path_ = Numbered(path);
}

void ProfileRecorder::Add(Profile::Graph graph, std::weak_ptr<const ProfiledGraph> source,
                          const std::shared_ptr<Trace>& trace) {
  base::MutexLock lock(mu_);
  nodes_ += graph.nodes.size() + 1;
  entries_.push_back({std::move(graph), std::move(source), trace});
  LetGo();
}

void ProfileRecorder::End(int64_t executable, const ProfiledGraph& source) {
  Profile::Graph last;
  try {
    source.UpdateProfile(last);
  } catch (const std::bad_alloc&) {
    last = {};  // a destructor calls this
  }
  base::MutexLock lock(mu_);
  for (Entry& entry : entries_) {
    if (entry.graph.executable != executable) continue;
    entry.graph.launches = last.launches;
    entry.graph.report = std::move(last.report);
    entry.ended = true;
    break;
  }
  LetGo();
}

// Keeps all that still exist.
void ProfileRecorder::LetGo() {
  for (auto entry = entries_.begin(); nodes_ > most_nodes_ && entry != entries_.end();) {
    if (!entry->ended) {
      ++entry;
      continue;
    }
    nodes_ -= entry->graph.nodes.size() + 1;
    ++lost_;
    entry = entries_.erase(entry);
  }
}

void ProfileRecorder::Update() {
  std::vector<std::pair<int64_t, std::weak_ptr<const ProfiledGraph>>> sources;
  {
    base::MutexLock lock(mu_);
    for (const Entry& entry : entries_) sources.emplace_back(entry.graph.executable, entry.source);
  }
  std::map<int64_t, Profile::Graph> now;
  for (const auto& [executable, source] : sources) {
    if (const auto alive = source.lock()) alive->UpdateProfile(now[executable]);
  }
  base::MutexLock lock(mu_);
  for (Entry& entry : entries_) {
    const auto at = now.find(entry.graph.executable);
    if (at == now.end() || entry.ended) continue;
    entry.graph.launches = at->second.launches;
    entry.graph.report = at->second.report;
  }
}

Profile ProfileRecorder::Take(const std::vector<Device>& devices) {
  Update();
  Profile profile;
  profile.devices = devices;
  std::set<int64_t> graphs;
  std::vector<std::shared_ptr<Trace>> traces{trace_};
  {
    base::MutexLock lock(mu_);
    profile.lost_graphs = lost_;
    for (const Entry& entry : entries_) {
      profile.graphs.push_back(entry.graph);
      graphs.insert(entry.graph.executable);
      std::shared_ptr<Trace> trace = entry.trace.lock();
      if (trace == nullptr || std::find(traces.begin(), traces.end(), trace) != traces.end()) continue;
      traces.push_back(std::move(trace));
    }
  }
  for (const std::shared_ptr<Trace>& trace : traces) {
    profile.lost_spans += trace->lost_spans();
    AddSpans(*trace, graphs, *trace_, profile.spans);
  }
  profile.length_us = trace_->Now();
  return profile;
}

absl::Status ProfileRecorder::WriteFile(const std::vector<Device>& devices) {
  std::string path;
  {
    base::MutexLock lock(mu_);
    path.swap(path_);
  }
  return path.empty() ? absl::OkStatus() : Take(devices).Write(path);
}

}  // namespace penstock::observe

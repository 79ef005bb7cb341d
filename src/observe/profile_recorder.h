// ProfileRecorder: the executables of a runtime whose runs are recorded, their traces, and its pipelines.
//
// Ownership: belongs to the runtime's core. Executables are referred to until they end, and their own traces are held
//            weakly. Of an executable that has gone it keeps what it was, and its spans.
// Threads:   thread-safe; Start is called before any other call.
// Locks:     mu_, under which executables are asked what they counted. It is never held while one might be destroyed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "penstock/device.h"
#include "penstock/profile.h"
#include "penstock/trace.h"
#include "src/base/mutex.h"
#include "src/observe/profiled_pipelines.h"

namespace penstock::observe {

// What of a recorded graph changes while it is in use.
class ProfiledGraph {
 public:
  // Sets `launches` and `report`. It is called under the recorder's lock.
  virtual void UpdateProfile(Profile::Graph& graph) const = 0;

 protected:
  ~ProfiledGraph() = default;
};

class ProfileRecorder {
 public:
  // Of graphs that have gone it keeps the newest, as long as all have no more nodes.
  explicit ProfileRecorder(size_t most_nodes = 1'000'000) : most_nodes_(most_nodes) {}

  // Records all executables if `most_spans` is not 0. `path`: where a file is to be written, with the process's number
  // for each %p; empty: nowhere.
  void Start(int64_t most_spans, const std::string& path);
  bool records_all() const { return records_all_; }
  // For executables without a trace of their own.
  const std::shared_ptr<Trace>& trace() const { return trace_; }

  // `source` is asked until End.
  void Add(Profile::Graph graph, const ProfiledGraph& source, const std::shared_ptr<Trace>& trace);
  // The executable is being destroyed. Its own trace might go with it, so its spans are copied to trace().
  void End(int64_t executable);
  ProfiledPipelines& pipelines() { return pipelines_; }
  Profile Take(const std::vector<Device>& devices);
  // The path of the file to be written, once; empty: there is none.
  std::string TakePath();

 private:
  struct Entry {
    Profile::Graph graph;
    const ProfiledGraph* source;  // null once the executable has ended
    std::weak_ptr<Trace> trace;
  };

  void KeepSpans(int64_t executable);
  std::deque<Entry>::iterator Find(int64_t executable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static constexpr size_t kDefaultSpans = 500'000;
  const size_t most_nodes_;

  // Constant after Start.
  bool records_all_ = false;
  std::shared_ptr<Trace> trace_ = Trace::Create(kDefaultSpans);
  ProfiledPipelines pipelines_;

  base::Mutex mu_;
  std::string path_ ABSL_GUARDED_BY(mu_);
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);
  size_t nodes_ ABSL_GUARDED_BY(mu_) = 0;  // of all entries, and one more for each
  int64_t lost_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::observe

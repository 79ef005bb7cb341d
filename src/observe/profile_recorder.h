// ProfileRecorder: the executables of a runtime whose runs are recorded, and their traces.
//
// Ownership: belongs to the runtime's core. Executables and their own traces are held weakly; of an executable that has
//            gone it keeps what it was.
// Threads:   thread-safe; Start is called before any other call.
// Locks:     mu_, a leaf. It is never held while an executable is asked, or might be destroyed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/device.h"
#include "penstock/profile.h"
#include "penstock/trace.h"
#include "src/base/mutex.h"

namespace penstock::observe {

// What of a recorded graph changes while it is in use.
class ProfiledGraph {
 public:
  // Sets `launches` and `report`.
  virtual void UpdateProfile(Profile::Graph& graph) const = 0;

 protected:
  ~ProfiledGraph() = default;
};

class ProfileRecorder {
 public:
  // Of graphs that have gone it keeps the newest, as long as all have no more nodes.
  explicit ProfileRecorder(size_t most_nodes = 1'000'000) : most_nodes_(most_nodes) {}

  // Records all executables if `most_spans` is not 0. `path`: where WriteFile writes; empty: nowhere.
  void Start(int64_t most_spans, const std::string& path);
  bool records_all() const { return records_all_; }
  // For executables without a trace of their own.
  const std::shared_ptr<Trace>& trace() const { return trace_; }

  void Add(Profile::Graph graph, std::weak_ptr<const ProfiledGraph> source, const std::shared_ptr<Trace>& trace);
  // The executable is being destroyed.
  void End(int64_t executable, const ProfiledGraph& source);
  Profile Take(const std::vector<Device>& devices);
  // Writes the file, once. OK if there is none to write.
  absl::Status WriteFile(const std::vector<Device>& devices);

 private:
  struct Entry {
    Profile::Graph graph;
    std::weak_ptr<const ProfiledGraph> source;
    std::weak_ptr<Trace> trace;
    bool ended = false;
  };

  void Update();
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static constexpr size_t kDefaultSpans = 500'000;
  const size_t most_nodes_;

  // Constant after Start.
  bool records_all_ = false;
  std::shared_ptr<Trace> trace_ = Trace::Create(kDefaultSpans);

  base::Mutex mu_;
  std::string path_ ABSL_GUARDED_BY(mu_);
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);
  size_t nodes_ ABSL_GUARDED_BY(mu_) = 0;  // of all entries, and one more for each
  int64_t lost_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::observe

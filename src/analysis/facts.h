// Facts: what the doctor's rules share, computed once from a profile.
//
// Looked at is the steady state: of each graph the time from the launch of its first run that is warm to the end of its
// last one. The first run of each slot is not (CUDA graphs are made and loaded, memory is touched), but at most a
// quarter of the runs are left out, and at least one is. A graph that ran once has no steady state. The wall time is
// what these times cover together, without those in which devices were idle since runs were being recorded: that is the
// profile's doing. All else is clipped to it.
//
// Spans that no clock can have made (not finite, or ending before they begin) are left out, and so is what refers to a
// graph, node or device that the profile has not.
//
// Threads: built by one thread; then constant. The profile and the machine must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/profile.h"
#include "src/analysis/idle.h"
#include "src/analysis/machine.h"
#include "src/analysis/time_set.h"

namespace penstock::analysis {

// What a device does at the same time as its other engines: uploads, downloads, kernels.
struct Engine {
  int device = 0;
  SpanKind kind = SpanKind::kKernel;
  std::string name;  // "cuda:0 uploads"
  TimeSet busy;  // at least one span of the kind is there
  double busy_us = 0;
};

struct NodeFacts {
  int64_t count = 0;  // of spans, in the wall time
  double total_us = 0, shortest_us = 0, median_us = 0;
  int span = -1;  // the longest, a place in Profile::spans
  bool batched = false;  // a span stands for several nodes
};

struct GraphFacts {
  bool steady = false;  // it has a steady state; else all below is empty
  Interval window;  // from the launch of the first warm run to the end of the last one
  // The window without what belongs to other graphs: when only runs of these were in flight. Empty if all runs together
  // take less than 5 % of the wall time.
  TimeSet time;
  double time_us = 0;
  int64_t runs = 0;  // in the window
  double run_us = 0;  // mean time from a launch to its run's end
  double submit_us = 0;  // mean time of a launch
  int most_in_flight = 0;  // runs of this graph at once
  bool is_body = false;  // each run is within one of another graph: the body of a construct that the host drives
  std::vector<NodeFacts> nodes;  // as Profile::Graph::nodes
  std::vector<int> spans;  // within the wall time, at least in part
};

class Facts {
 public:
  Facts(const Profile& profile, const Machine* machine);

  const Profile& profile() const { return profile_; }
  const Machine* machine() const { return machine_; }

  const TimeSet& window() const { return window_; }
  double wall_us() const { return wall_us_; }
  const std::vector<Engine>& engines() const { return engines_; }
  const Engine* busiest() const;  // null: no engine worked
  double floor_us() const { return busiest() == nullptr ? 0 : busiest()->busy_us; }
  // How much lower the floor is if engines of that kind have so much less to do.
  double FloorCut(SpanKind kind, double us) const;
  const std::vector<IdlePart>& idle() const { return idle_; }
  const std::vector<GraphFacts>& graphs() const { return graphs_; }  // as Profile::graphs

  // The place of the span's graph in Profile::graphs, and of its node there; -1: none.
  int GraphOf(int span) const { return graph_of_[static_cast<size_t>(span)]; }
  int NodeOf(int span) const;
  // The spans that are within the wall time, at least in part.
  const std::vector<int>& working() const { return working_; }
  // A span within the wall time.
  TimeSet Clip(std::vector<Interval> intervals) const { return TimeSet(std::move(intervals)).And(window_); }
  Interval At(int span) const;
  double Share(double us) const { return wall_us_ > 0 ? us / wall_us_ : 0; }

 private:
  void MapSpans();
  void FindWindows();
  void FindEngines();
  void LeaveOutRecording();
  void CountNodes();
  void CountRuns();
  void FindTimes(const std::vector<int>& runs);

  const Profile& profile_;
  const Machine* machine_;
  std::vector<int> graph_of_;  // for each span
  std::vector<int> valid_, working_;
  TimeSet window_;
  double wall_us_ = 0;
  std::vector<Engine> engines_;
  std::vector<IdlePart> idle_;
  std::vector<GraphFacts> graphs_;
};

}  // namespace penstock::analysis

// SimSubmission: how far a simulated run has been submitted, and the host steps that whoever submits it gives to the
// workers. Internal to graph/simulate.
//
// It follows RunCore and HostProgress (src/runtime/run): while a thread submits, it looks at nothing. When it pauses or
// is done, it looks at events, lane by lane, gives the host steps to the workers that wait for nothing else, and only
// then takes notice of host steps that have ended meanwhile. It looks at the events of a segment once it has submitted
// all of that.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "graph/simulate/sim_program.h"

namespace penstock::graph {

class SimSubmission {
 public:
  // A host step that waits for nothing but to be given to the workers, and what it waited for until then.
  struct Step {
    int32_t node;
    SimWait wait;
    int32_t waited_for;
    SimTicks since;
  };

  // A run begins.
  void Begin(const SimProgram& program);

  // Parts of segments that have been submitted, or are being so.
  size_t parts() const { return parts_; }
  bool is_done() const { return parts_ == program_->segments.size(); }
  const SimSegment& next() const { return program_->segments[parts_]; }
  // Whether a thread submits the run, or a worker is about to.
  bool is_going_on() const { return is_going_on_; }
  void AwaitWorker(SimTicks now);
  void BeginNext(SimTicks now);
  void Pause() { is_going_on_ = false; }

  // What a host step waits for has ended: the node `before`.
  void NoteEnd(int32_t step, int32_t before, bool as_graphs, SimTicks now);
  void Add(const Step& step) { steps_.push_back(step); }
  //   kKnown  without those that wait for host steps which have ended since the thread began to submit
  //   kAll    with them
  enum class Which : uint8_t { kKnown, kAll };
  // Takes the host steps that are to be given to the workers now, in that order.
  std::vector<Step> Take(Which which, SimTicks now);

 private:
  // What has ended of that which a host step waits for: when the last host step did, and when the last event was
  // complete, with the largest SimProgram::seen of those that are looked at together.
  struct LastEnds {
    SimTicks step = -1, event = -1;
    int32_t seen = -1;
  };

  SimTicks UnseenSince(SimTicks now) const { return is_going_on_ ? since_ : now; }
  SimTicks EventsUnseenSince(int32_t node, SimTicks now) const;
  // What comes first: what waited for host steps that had ended before; what waited for events; the rest.
  std::tuple<int, SimTicks, int32_t> OrderOf(const Step& step, SimTicks now) const;

  const SimProgram* program_ = nullptr;
  size_t parts_ = 0;
  bool is_going_on_ = false;
  SimTicks since_ = 0, segment_since_ = 0;  // when the thread, and the submission of the segment, began
  std::vector<Step> steps_;
  std::vector<LastEnds> last_ends_;  // of each node; used for host steps
};

}  // namespace penstock::graph

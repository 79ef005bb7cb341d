#include "graph/simulate/sim_submission.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::graph {

void SimSubmission::Begin(const SimProgram& program) {
  program_ = &program;
  parts_ = 0;
  is_going_on_ = false;
  steps_.clear();
  last_ends_.assign(program.seen.size(), {});
}

void SimSubmission::AwaitWorker(SimTicks now) {
  is_going_on_ = true;
  since_ = now;
}

void SimSubmission::BeginNext(SimTicks now) {
  const bool goes_on = next().goes_on;
  if (!std::exchange(is_going_on_, true) || !goes_on) since_ = now;
  if (!goes_on) segment_since_ = now;
  ++parts_;
}

void SimSubmission::NoteEnd(int32_t step, int32_t before, bool as_graphs, SimTicks now) {
  LastEnds& last = last_ends_[static_cast<size_t>(step)];
  if (program_->on_host[static_cast<size_t>(before)]) {
    last.step = now;
    return;
  }
  const int32_t seen = program_->seen[static_cast<size_t>(as_graphs ? step : before)];
  last.seen = last.event < EventsUnseenSince(before, now) ? seen : std::max(seen, last.seen);
  last.event = now;
}

SimTicks SimSubmission::EventsUnseenSince(int32_t node, SimTicks now) const {
  const int32_t submitted = static_cast<int32_t>(parts_) - (is_going_on_ ? 1 : 0);
  const bool is_open = program_->last_part[static_cast<size_t>(node)] >= submitted;
  return is_open ? std::min(segment_since_, UnseenSince(now)) : UnseenSince(now);
}

std::tuple<int, SimTicks, int32_t> SimSubmission::OrderOf(const Step& step, SimTicks now) const {
  const LastEnds& last = last_ends_[static_cast<size_t>(step.node)];
  if (last.step > UnseenSince(now)) return {2, last.step, step.node};
  if (last.event >= EventsUnseenSince(step.node, now)) return {1, last.seen, step.node};
  return {0, last.step, step.node};
}

std::vector<SimSubmission::Step> SimSubmission::Take(Which which, SimTicks now) {
  std::vector<Step> steps = std::exchange(steps_, {});
  std::sort(steps.begin(), steps.end(),
            [&](const Step& x, const Step& y) { return OrderOf(x, now) < OrderOf(y, now); });
  const auto stays = [&](const Step& step) {
    const bool is_open = program_->last_part[static_cast<size_t>(step.node)] >= static_cast<int32_t>(parts_);
    return is_open || (which == Which::kKnown && std::get<0>(OrderOf(step, now)) == 2);
  };
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(steps_), stays);
  std::erase_if(steps, stays);
  return steps;
}

}  // namespace penstock::graph

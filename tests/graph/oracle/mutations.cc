#include "tests/graph/oracle/mutations.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "tests/graph/oracle/execution.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/shape_oracle.h"

namespace penstock::graph {
namespace {

void Count(Tally& tally, bool noticed, const std::string& what) {
  ++tally.tried;
  tally.noticed += noticed;
  if (!noticed && tally.missed.empty()) tally.missed = what;
}

// Calls `check` on the plan without each of the waits in commands [begin, end): a wait becomes a record of an event
// that nothing waits for.
void WithoutEachWait(Plan& plan, int32_t begin, int32_t end, const std::function<bool()>& noticed, Tally& tally) {
  plan.events.push_back(plan.events.empty() ? PlanEvent{} : plan.events[0]);
  for (int32_t c = begin; c < end; ++c) {
    Command& command = plan.commands[c];
    if (command.op != Command::Op::kWait) continue;
    const Command wait =
        std::exchange(command, {Command::Op::kRecord, command.lane, static_cast<int32_t>(plan.events.size()) - 1});
    Count(tally, noticed(), "the wait of command " + std::to_string(c));
    command = wait;
  }
  plan.events.pop_back();
}

template <class I>
void WithoutEach(std::vector<I>& list, const std::function<bool()>& noticed, const std::string& what, Tally& tally) {
  for (size_t k = 0; k < list.size(); ++k) {
    const std::vector<I> whole = list;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(k));
    Count(tally, noticed(), what + " " + std::to_string(whole[k]));
    list = whole;
  }
}

}  // namespace

Tally RemoveEachEventWait(const Model& model, const Plan& plan) {
  Tally tally;
  Plan changed = plan;
  const OrderOracle oracle(model, changed);
  const auto noticed = [&] { return !oracle.Check(Execution(changed)).empty(); };
  WithoutEachWait(changed, 0, plan.epilogue_begin, noticed, tally);
  for (size_t h = 0; h < plan.host_steps.size(); ++h) {
    WithoutEach(changed.host_steps[h].after_events, noticed, "host step " + std::to_string(h) + " after event", tally);
  }
  return tally;
}

Tally RemoveEachHostWait(const Model& model, const Plan& plan) {
  Tally tally;
  Plan changed = plan;
  const OrderOracle oracle(model, changed);
  const auto noticed = [&] { return !oracle.Check(Execution(changed)).empty(); };
  for (size_t h = 0; h < plan.host_steps.size(); ++h) {
    WithoutEach(changed.host_steps[h].after_hosts, noticed, "host step " + std::to_string(h) + " after host step",
                tally);
  }
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    WithoutEach(changed.segments[s].after_hosts, noticed, "segment " + std::to_string(s) + " after host step", tally);
  }
  return tally;
}

Tally RemoveEachFinishWait(const Plan& plan) {
  Tally tally;
  Plan changed = plan;
  WithoutEachWait(
      changed, plan.epilogue_begin, plan.short_epilogue_begin, [&] { return !CheckFinish(changed).empty(); }, tally);
  WithoutEachWait(
      changed, plan.short_epilogue_begin, plan.epilogue_end, [&] { return !CheckShortFinish(changed).empty(); }, tally);
  return tally;
}

Tally RemoveEachKeptEdge(const Model& model, const Plan& plan) {
  Tally tally;
  const OrderOracle oracle(model, plan);
  std::vector<std::vector<int32_t>> preds;
  for (const PlanNode& node : plan.nodes) preds.emplace_back(node.preds.begin(), node.preds.end());
  const std::string wrong = oracle.Check(Execution(plan, preds));
  if (!wrong.empty()) Count(tally, false, "the preds are not enough: " + wrong);
  const auto noticed = [&] { return !oracle.Check(Execution(plan, preds)).empty(); };
  for (size_t n = 0; n < preds.size(); ++n) {
    WithoutEach(preds[n], noticed, "node " + std::to_string(n) + " after", tally);
  }
  return tally;
}

Tally OverlapEachLivePair(const Model& model, const Plan& plan) {
  Tally tally;
  Plan changed = plan;
  const Execution run(plan);
  if (!run.problem().empty()) {
    Count(tally, false, run.problem());
    return tally;
  }
  int64_t beyond = 0;
  for (const Arena& arena : plan.arenas) beyond = std::max(beyond, arena.bytes);
  for (int32_t b = 0; b < static_cast<int32_t>(plan.instances.size()); ++b) {
    for (int32_t a = 0; a < b; ++a) {
      Instance &x = changed.instances[a], &y = changed.instances[b];
      const bool in_one_arena = x.space == y.space && x.device == y.device && InArena(x.space);
      if (!in_one_arena || x.bytes == 0 || y.bytes == 0 || !MayLiveAtOnce(plan, run, a, b)) continue;
      if (MayHandOver(model, plan, run, a, b)) continue;
      const int64_t offset_x = std::exchange(x.offset, beyond), offset_y = std::exchange(y.offset, beyond);
      Count(tally, !CheckMemory(model, changed, run).empty(), std::to_string(a) + " on " + std::to_string(b));
      x.offset = offset_x, y.offset = offset_y;
    }
  }
  return tally;
}

}  // namespace penstock::graph

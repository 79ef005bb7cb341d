#include "graph/memory/in_place.h"

#include <algorithm>
#include <span>

#include "graph/common/message.h"

namespace penstock::graph {
namespace {

bool IsOnlyUse(std::span<const BoxRef> accesses, int32_t access) {
  const BoxRef& own = accesses[access];
  return own.whole() && std::count_if(accesses.begin(), accesses.end(),
                                      [&](const BoxRef& other) { return other.base == own.base; }) == 1;
}

}  // namespace

InPlace::InPlace(const Records& records, const Ordered& ordered, const Reduced& reduced, const Lifetimes& lives,
                 Findings& findings)
    : records_(records), ordered_(ordered), reduced_(reduced), lives_(lives) {
  if (records.in_place.empty()) return;
  giver_.resize(ordered.instances.size());
  std::vector<size_t> first(records.nodes.size() + 1);  // for each node, its begin in records.in_place
  for (const InPlacePair& pair : records.in_place) ++first[pair.node + 1];
  for (const DeclId n : records.nodes.ids()) first[n + 1] += first[n];
  for (const StepId s : ordered.steps.ids()) {
    const DeclId decl = ordered.steps[s].decl;
    if (decl < 0) continue;
    for (size_t i = first[decl]; i < first[decl + 1]; ++i) {
      Find(s, records.in_place[i], findings);
    }
  }
}

void InPlace::Find(StepId step, const InPlacePair& pair, Findings& findings) {
  const Use* const uses = ordered_.UsesOf(ordered_.steps[step]).data();
  const InstanceId from = uses[pair.in].instance, to = uses[pair.out].instance;
  const std::span<const BoxRef> accesses = records_.boxes[pair.node];
  const auto quoted = [](const Name& name) { return "'" + OneLine(name.view()) + "'"; };  // no effect on plans
  const auto name = [&](int32_t access) { return quoted(records_.buffer_name(accesses[access].buffer)); };
  const std::string why = WhyNot(step, pair, from, to);
  if (why.empty()) giver_[to] = from;
  findings.remarks.push_back("node " + quoted(records_.model.nodes[pair.node].name) +
                             (why.empty() ? " writes " : " does not write ") + name(pair.out) + " in place of " +
                             name(pair.in) + (why.empty() ? "" : ": " + why));
}

std::string InPlace::WhyNot(StepId step, const InPlacePair& pair, InstanceId from, InstanceId to) const {
  const Instance &x = ordered_.instances[from], &y = ordered_.instances[to];
  const std::span<const BoxRef> accesses = records_.boxes[pair.node];
  const BoxRef &read = accesses[pair.in], &written = accesses[pair.out];
  const auto element = [&](const BoxRef& access) { return records_.buffers[access.buffer].type.size; };
  if (!InArena(x.space) || x.space != y.space || x.device != y.device) return "they are not in one arena";
  if (x.leased || y.leased) return "one of them is leased with the slot";
  if (x.bytes == 0 || y.bytes == 0) return "they take no bytes";
  if (Reads(written.mode)) return "it reads the output too";
  if (written.mode != AccessMode::kWrite) return "it does not write all of the output";
  if (!IsOnlyUse(accesses, pair.in) || !IsOnlyUse(accesses, pair.out)) {
    return "it does not access each of them as a whole, by one access";
  }
  if (element(read) != element(written)) return "their elements have different sizes";
  const auto pitch = [&](const BoxRef& access) { return records_.model.buffers[access.base].pitch; };
  if (pitch(read) != pitch(written)) return "their pitches differ";
  if (y.bytes > x.bytes) return "the output is larger";
  if (lives_.first(to) != step || lives_.has_other_starts(to)) return "the output is used before";
  if (lives_.last(from) != step) return "the input is used after it";
  if (lives_.never_ends(from) || !lives_.AreDone(lives_.others(from), reduced_.ClockOf(step))) {
    return "other users of the input may run concurrently";
  }
  return "";
}

}  // namespace penstock::graph

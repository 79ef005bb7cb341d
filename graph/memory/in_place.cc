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

InPlace::InPlace(Draft& draft, const Lifetimes& lives) : lives_(lives) {
  if (draft.in_place.empty()) return;
  giver_.assign(draft.instances.size(), -1);
  std::vector<size_t> first(draft.nodes.size() + 1);  // for each node, its begin in draft.in_place
  for (const InPlacePair& pair : draft.in_place) ++first[static_cast<size_t>(pair.node) + 1];
  for (size_t n = 0; n < draft.nodes.size(); ++n) first[n + 1] += first[n];
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    const int32_t decl = draft.steps[s].decl;
    if (decl < 0) continue;
    for (size_t i = first[decl]; i < first[static_cast<size_t>(decl) + 1]; ++i) {
      Find(draft, s, draft.in_place[i]);
    }
  }
}

void InPlace::Find(Draft& draft, int32_t step, const InPlacePair& pair) {
  const Use* const uses = draft.uses.data() + draft.steps[step].first_use;
  const int32_t from = uses[pair.in].instance, to = uses[pair.out].instance;
  const std::span<const BoxRef> accesses = draft.boxes[pair.node];
  const auto quoted = [](const Name& name) { return "'" + OneLine(name.view()) + "'"; };  // no effect on plans
  const auto name = [&](int32_t access) { return quoted(draft.buffer_name(accesses[access].buffer)); };
  const std::string why = WhyNot(draft, step, pair, from, to);
  if (why.empty()) giver_[to] = from;
  draft.notes.push_back("node " + quoted(draft.model.nodes[pair.node].name) +
                        (why.empty() ? " writes " : " does not write ") + name(pair.out) + " in place of " +
                        name(pair.in) + (why.empty() ? "" : ": " + why));
}

std::string InPlace::WhyNot(const Draft& draft, int32_t step, const InPlacePair& pair, int32_t from, int32_t to) const {
  const Instance &x = draft.instances[from], &y = draft.instances[to];
  const std::span<const BoxRef> accesses = draft.boxes[pair.node];
  const BoxRef &read = accesses[pair.in], &written = accesses[pair.out];
  const auto element = [&](const BoxRef& access) { return draft.buffers[access.buffer].type.size; };
  if (!InArena(x.space) || x.space != y.space || x.device != y.device) return "they are not in one arena";
  if (x.leased || y.leased) return "whoever leases the slot has one of them";
  if (x.bytes == 0 || y.bytes == 0) return "they take no bytes";
  if (written.mode != AccessMode::kWrite) return "it reads the output too";
  if (!IsOnlyUse(accesses, pair.in) || !IsOnlyUse(accesses, pair.out)) {
    return "it does not read and write them as wholes, each by one access";
  }
  if (element(read) != element(written)) return "their elements have different sizes";
  const auto pitch = [&](const BoxRef& access) { return draft.model.buffers[access.base].pitch; };
  if (pitch(read) != pitch(written)) return "their rows lie differently far apart";
  if (y.bytes > x.bytes) return "the output is larger";
  if (lives_.first(to) != step || lives_.has_other_starts(to)) return "the output is used before";
  if (lives_.last(from) != step) return "the input is used after it";
  if (lives_.never_ends(from) || !lives_.AreDone(lives_.others(from), draft.ClockOf(step))) {
    return "other users of the input may run beside it";
  }
  return "";
}

}  // namespace penstock::graph

#include "graph/plan/cap_width.h"

#include <algorithm>
#include <span>
#include <utility>

namespace penstock::graph {
namespace {

// The most nodes that count and have equally long paths before them.
int32_t WidestLevel(const CsrRows& preds, const std::vector<bool>& counts) {
  std::vector<int32_t> level(static_cast<size_t>(preds.rows())), nodes(level.size());
  int32_t widest = 0;
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) level[v] = std::max(level[v], level[p] + 1);
    if (counts[v]) widest = std::max(widest, ++nodes[level[v]]);
  }
  return widest;
}

// Chains in the order in which they last got a node: a list in arrays.
class Chains {
 public:
  Chains(int32_t nodes, int32_t most)
      : most_(most), chain_of_(static_cast<size_t>(nodes), -1), precedes_(static_cast<size_t>(nodes) * Words()) {}

  // The chain of a node; -1 if it is in none.
  int32_t of(int32_t node) const { return chain_of_[node]; }
  // The chain whose last node this is; -1 if there is none.
  int32_t EndingAt(int32_t node) const {
    const int32_t chain = chain_of_[node];
    return chain >= 0 && last_[chain] == node ? chain : -1;
  }
  // Puts the node at the end of a chain: that of the latest of `preds` which is the last of one, or another. Returns
  // the node before it in the chain, or -1.
  int32_t Place(int32_t node, std::span<const int32_t> preds) {
    int32_t chain = -1;
    for (const int32_t p : preds) chain = EndingAt(p) >= 0 ? EndingAt(p) : chain;
    if (chain < 0 && count() < most_) {
      chain = count();
      last_.push_back(-1);
      before_.push_back(-1);
      after_.push_back(-1);
    } else {
      if (chain < 0) chain = longest_without_;
      Remove(chain);
    }
    Append(chain);
    chain_of_[node] = chain;
    return std::exchange(last_[chain], node);
  }

  // Whether `node` has been said to precede a node of the chain.
  bool Precedes(int32_t node, int32_t chain) const { return (WordOf(node, chain) >> (chain % 64) & 1) != 0; }
  void SetPrecedes(int32_t node, int32_t chain) { precedes_[IndexOf(node, chain)] |= uint64_t{1} << (chain % 64); }

 private:
  int32_t count() const { return static_cast<int32_t>(last_.size()); }
  void Append(int32_t chain) {
    before_[chain] = newest_;
    after_[chain] = -1;
    (newest_ < 0 ? longest_without_ : after_[newest_]) = chain;
    newest_ = chain;
  }
  void Remove(int32_t chain) {
    const int32_t before = before_[chain], after = after_[chain];
    (before < 0 ? longest_without_ : after_[before]) = after;
    (after < 0 ? newest_ : before_[after]) = before;
  }
  size_t Words() const { return (static_cast<size_t>(most_) + 63) / 64; }
  size_t IndexOf(int32_t node, int32_t chain) const {
    return static_cast<size_t>(node) * Words() + static_cast<size_t>(chain) / 64;
  }
  uint64_t WordOf(int32_t node, int32_t chain) const { return precedes_[IndexOf(node, chain)]; }

  const int32_t most_;
  std::vector<int32_t> chain_of_;  // for each node
  std::vector<int32_t> last_, before_, after_;  // for each chain: its last node, and its neighbours in the list
  int32_t longest_without_ = -1, newest_ = -1;  // the ends of the list
  std::vector<uint64_t> precedes_;  // for each node: a bit for each chain
};

// Adds to the open row those of `preds` that chains do not imply. `before`: the node before `node` in its chain, or -1.
void AddNeeded(Chains& chains, int32_t node, int32_t before, std::span<const int32_t> preds,
               std::vector<int32_t>& latest, CsrRows& out) {
  const auto latest_of_chain = [&](int32_t p) -> int32_t& { return latest[chains.of(p)]; };
  for (const int32_t p : preds) {
    if (chains.of(p) >= 0) latest_of_chain(p) = std::max(latest_of_chain(p), p);
  }
  if (before >= 0) latest_of_chain(before) = before;
  const int32_t chain = chains.of(node);
  for (const int32_t p : preds) {
    if (p == before) continue;
    const bool implied = (chains.of(p) >= 0 && latest_of_chain(p) != p) || (chain >= 0 && chains.Precedes(p, chain));
    if (!implied) out.Add(p);
    if (chain >= 0) chains.SetPrecedes(p, chain);
  }
  if (before >= 0) out.Add(before);
  for (const int32_t p : preds) {
    if (chains.of(p) >= 0) latest_of_chain(p) = -1;
  }
  if (before >= 0) latest_of_chain(before) = -1;
}

}  // namespace

CsrRows CapWidth(CsrRows preds, const std::vector<bool>& counts, int32_t width, Width of) {
  if (preds.rows() <= width) return preds;
  if (of == Width::kOfLevels && WidestLevel(preds, counts) <= width) return preds;
  if (std::count(counts.begin(), counts.end(), true) <= width) return preds;
  CsrRows capped;
  capped.Reserve(static_cast<size_t>(preds.rows()), preds.items() + static_cast<size_t>(preds.rows()));
  Chains chains(preds.rows(), width);
  std::vector<int32_t> latest(static_cast<size_t>(width), -1);
  for (int32_t v = 0; v < preds.rows(); ++v) {
    const int32_t before = counts[v] ? chains.Place(v, preds[v]) : -1;
    AddNeeded(chains, v, before, preds[v], latest, capped);
    capped.CloseAsSet();
  }
  return capped;
}

}  // namespace penstock::graph

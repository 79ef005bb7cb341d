// PoisonedStages: which stages of a pipeline begin nothing because a State of theirs was poisoned and must be reset,
// and for which keys. A pure state machine.
//
//   running -- Note: a run has failed --> halted -- Take: no run of the stage is left --> resetting -- End --> running
//
// Threads: thread-compatible; a pipeline guards it by its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::runtime {

class PoisonedStages {
 public:
  // `keyed`: for each stage, whether it has keyed States. `items`: the number of the pipeline's items; for that many
  // keys only Take allocates.
  PoisonedStages(std::vector<bool> keyed, size_t items);

  bool halted(int stage) const { return stages_[stage].halted; }
  // An item with that key has failed in the stage.
  void Note(int stage, uint64_t key);
  // Whether some stage is halted and no halted stage has work. `working(stage)`: how many items are in it.
  template <class Working>
  bool MayReset(Working working) const;
  // The stages that are halted now, and their keys, each once; the first key stands for all States without a key. A
  // stage that halts later may have poisoned its State after the user's reset, and is left for the next time.
  struct Halted {
    std::vector<int> stages;
    std::vector<uint64_t> keys;
  };
  Halted Take();
  // The States are reset: the stages begin items again.
  void End(const std::vector<int>& stages);

 private:
  struct Entry {
    bool halted = false;
    std::vector<uint64_t> keys{};
  };

  const std::vector<bool> keyed_;
  std::vector<Entry> stages_;
};

template <class Working>
bool PoisonedStages::MayReset(Working working) const {
  bool any = false;
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (!stages_[s].halted) continue;
    if (working(static_cast<int>(s)) > 0) return false;
    any = true;
  }
  return any;
}

}  // namespace penstock::runtime

// CopyLife under every schedule: a copy that its caller leaves counts until it has ended, and no longer, whoever of the
// two comes last. With a mistake planted that the exploration must find.
#include "src/runtime/state/copy_life.h"

#include <memory>
#include <string>

#include "tests/support/explored.h"

namespace penstock::runtime::copy_life_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::ModelAtomic;
using interleave::Scenario;

// StateCore's CopyByRing, whose deadline passes, and Call::EndInRing. The caller's own run counts until it has left.
template <class Life>
Scenario LeftWhileItEnds() {
  struct State {
    Life life;
    ModelAtomic<int> counted{1};
    bool ended = false;
    std::string problem;
  };
  auto state = std::make_shared<State>();
  state->life.Begin();
  Scenario scenario;
  scenario.threads.push_back([state] {
    state->counted.fetch_add(1);
    if (!state->life.Leave()) state->counted.fetch_sub(1);
    state->counted.fetch_sub(1);
    if (!state->life.over() && state->counted.load() == 0 && !state->ended) state->problem = "left and not counted";
  });
  scenario.threads.push_back([state] {
    state->ended = true;
    if (state->life.End()) state->counted.fetch_sub(1);
  });
  scenario.check = [state] {
    if (!state->problem.empty()) return state->problem;
    if (!state->life.over()) return std::string("not over");
    return std::string(state->counted.load() == 0 ? "" : "counted for ever, or twice");
  };
  return scenario;
}

TEST(CopyLife, CountsUntilItHasEndedWhateverTheSchedule) {
  ExpectSound(Explore([] { return LeftWhileItEnds<CopyLife<ModelAtomic>>(); }));
}

// Looks whether it is over, and leaves then.
class TwoStepLife : public CopyLife<ModelAtomic> {
 public:
  bool Leave() {
    if (over()) return false;
    CopyLife::Leave();
    return true;
  }
};

TEST(CopyLife, IsExploredCloselyEnoughToFindALookTakenTooEarly) {
  ExpectFound(Explore([] { return LeftWhileItEnds<TwoStepLife>(); }), "counted for ever, or twice");
}

}  // namespace
}  // namespace penstock::runtime::copy_life_test

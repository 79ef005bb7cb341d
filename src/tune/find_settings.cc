#include "src/tune/find_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/pace.h"
#include "src/base/status.h"
#include "src/tune/ratio_interval.h"

namespace penstock::tune {
namespace {

constexpr double kWorthwhile = 1.02;  // what is not better by this is not looked for
constexpr double kPromising = 1.01;  // what looks better by this is compared in pairs
constexpr double kFarBetter = 1.3;  // what looks better by this in one round is compared before anything else
constexpr size_t kLooksAtFirst = 2;  // of such a comparison
constexpr double kClearlyWorse = 1.5;  // is not measured a second time
constexpr double kAtOdds = 1.1;  // two measurements of a value that differ by this are followed by a third
constexpr size_t kMostChallengers = 2;  // of a choice at a time
constexpr int kPairsAtTheEnd = 3;

// Of three at most; 0 if there are none.
double MiddleOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Which value of the choice the settings have; -1: none of them.
int PlaceOf(const Settings& settings, const Knob& knob) {
  const auto is_it = [&](const std::string& value) {
    Settings with = settings;
    return with.Set(knob.key, value).ok() && with == settings;
  };
  const auto found = std::find_if(knob.values.begin(), knob.values.end(), is_it);
  return found == knob.values.end() ? -1 : static_cast<int>(found - knob.values.begin());
}

class SettingsSearch {
 public:
  explicit SettingsSearch(const Search& search) : search_(search), begin_(search.now()) {
    result_.settings = search.first;
    for (const Knob& knob : search.knobs) states_.push_back({.knob = &knob, .in_use = PlaceOf(search.first, knob)});
  }

  absl::StatusOr<TuneResult> Run();

 private:
  // A choice.
  struct KnobState {
    const Knob* knob;
    int in_use;  // place in Knob::values; -1: the search began with a value that is not there
    std::set<int> refused{}, worse{};  // values that failed, and that were clearly worse
  };
  // A value that is measured beside others.
  struct Candidate {
    int value;
    TuneResult::Trial trial;
    std::vector<double> logs{};  // of its costs over those in use
    bool out = false;
  };
  static bool IsAtOdds(const Candidate& candidate);
  template <class F>
  static std::vector<Candidate*> StillIn(std::vector<Candidate>& candidates, F wanted);

  // At first sight each value is measured once, and only one that is far better is taken.
  enum class Sight { kFirst, kSecond };
  absl::Status TryKnob(KnobState& state, Sight sight, bool& taken);
  std::vector<Candidate> CandidatesOf(const KnobState& state) const;
  absl::Status Screen(KnobState& state, Sight sight, std::vector<Candidate>& candidates);
  absl::Status MeasureOnce(KnobState& state, std::vector<Candidate*> candidates, bool back);
  absl::Status Compare(KnobState& state, Candidate& candidate, size_t looks);
  absl::Status AddPair(KnobState& state, Candidate& candidate);
  void Take(KnobState& state, const Candidate& candidate);
  void Record(TuneResult::Trial trial);
  absl::Status CompareWithFirst();
  void KeepFirst(double cost, std::string why);
  // The cost of one round; 0 if it failed, as `failed` says. 0 too if the budget is spent (over_).
  absl::StatusOr<double> Measure(const Settings& settings, const std::string& what, absl::Status& failed);
  absl::StatusOr<double> MeasureTwice(const Settings& settings, const std::string& what, absl::Status& failed);
  absl::StatusOr<double> MeasureInUse();
  absl::StatusOr<double> MeasureValue(KnobState& state, Candidate& candidate);
  Settings With(const KnobState& state, int value) const;

  const Search& search_;
  const double begin_;
  double longest_s_ = 0;  // a round so far
  bool over_ = false;  // the budget is spent
  std::vector<KnobState> states_;
  TuneResult result_;
};

Settings SettingsSearch::With(const KnobState& state, int value) const {
  Settings settings = result_.settings;
  const std::string& text = state.knob->values[static_cast<size_t>(value)];
  (void)settings.Set(state.knob->key, text);  // keys and values are the library's own
  return settings;
}

absl::StatusOr<double> SettingsSearch::Measure(const Settings& settings, const std::string& what,
                                               absl::Status& failed) {
  const double before = search_.now(), spent = before - begin_;
  if (result_.rounds > 0 && spent + longest_s_ > search_.budget_s) {
    over_ = true;
    return 0;
  }
  const auto percent = static_cast<int64_t>(100 * std::min(spent / search_.budget_s, 1.0));
  if (search_.progress) {
    PENSTOCK_RETURN_IF_ERROR(base::Tell(search_.progress, "progress", {.what = what, .done = percent, .total = 100}));
  }
  ++result_.rounds;
  absl::StatusOr<double> cost = search_.measure(settings);
  longest_s_ = std::max(longest_s_, search_.now() - before);
  if (absl::IsCancelled(cost.status())) return cost;
  if (cost.ok() && *cost > 0 && std::isfinite(*cost)) return cost;
  failed = cost.ok() ? absl::AbortedError("nothing was measured") : cost.status();
  return 0;
}

// A second time only if it failed, for settings with which the job has worked: something else may have been the cause.
absl::StatusOr<double> SettingsSearch::MeasureTwice(const Settings& settings, const std::string& what,
                                                    absl::Status& failed) {
  PENSTOCK_ASSIGN_OR_RETURN(const double cost, Measure(settings, what, failed));
  if (failed.ok()) return cost;
  absl::Status again;
  PENSTOCK_ASSIGN_OR_RETURN(const double second, Measure(settings, what, again));
  if (again.ok() && !over_) failed = absl::OkStatus();
  return second;
}

absl::StatusOr<double> SettingsSearch::MeasureInUse() {
  absl::Status failed;
  PENSTOCK_ASSIGN_OR_RETURN(const double cost, MeasureTwice(result_.settings, "settings in use", failed));
  if (failed.ok()) return cost;
  if (over_ && result_.before > 0) return 0;  // nobody knows whether it would have failed again
  return base::Prefixed("tune: the job failed with the settings in use", failed);
}

// 0: it failed, and is out, or the search is over.
absl::StatusOr<double> SettingsSearch::MeasureValue(KnobState& state, Candidate& candidate) {
  const std::string what = absl::StrCat(candidate.trial.key, " = ",
                                        candidate.trial.value.empty() ? "as without a setting" : candidate.trial.value);
  absl::Status failed;
  PENSTOCK_ASSIGN_OR_RETURN(const double cost, Measure(With(state, candidate.value), what, failed));
  if (over_) return 0;
  ++candidate.trial.rounds;
  if (failed.ok()) return cost;
  candidate.trial.verdict = Verdict::kRefused;
  candidate.trial.why = base::Str(failed.message());
  candidate.out = true;
  state.refused.insert(candidate.value);
  return 0;
}

std::vector<SettingsSearch::Candidate> SettingsSearch::CandidatesOf(const KnobState& state) const {
  std::vector<Candidate> candidates;
  for (int v = 0; v < static_cast<int>(state.knob->values.size()); ++v) {
    const bool next_to = std::abs(v - state.in_use) <= 1;
    if (v == state.in_use || state.refused.contains(v) || (state.worse.contains(v) && !next_to)) continue;
    candidates.push_back(
        {.value = v, .trial = {.key = state.knob->key, .value = state.knob->values[static_cast<size_t>(v)]}});
  }
  return candidates;
}

// All of them beside what is in use.
absl::Status SettingsSearch::MeasureOnce(KnobState& state, std::vector<Candidate*> candidates, bool back) {
  if (candidates.empty() || over_) return absl::OkStatus();
  if (back) std::reverse(candidates.begin(), candidates.end());
  std::vector<std::pair<Candidate*, double>> costs;
  double in_use = 0;
  const auto measure_in_use = [&]() -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(in_use, MeasureInUse());
    return absl::OkStatus();
  };
  if (!back) PENSTOCK_RETURN_IF_ERROR(measure_in_use());
  for (Candidate* const candidate : candidates) {
    if (over_) break;
    PENSTOCK_ASSIGN_OR_RETURN(const double cost, MeasureValue(state, *candidate));
    if (cost > 0) costs.emplace_back(candidate, cost);
  }
  if (back && !over_) PENSTOCK_RETURN_IF_ERROR(measure_in_use());
  if (in_use <= 0) return absl::OkStatus();
  for (const auto& [candidate, cost] : costs) candidate->logs.push_back(std::log(cost / in_use));
  return absl::OkStatus();
}

template <class F>
std::vector<SettingsSearch::Candidate*> SettingsSearch::StillIn(std::vector<Candidate>& candidates, F wanted) {
  std::vector<Candidate*> some;
  for (Candidate& candidate : candidates) {
    if (!candidate.out && wanted(candidate)) some.push_back(&candidate);
  }
  return some;
}

bool SettingsSearch::IsAtOdds(const Candidate& candidate) {
  const std::vector<double>& logs = candidate.logs;
  return logs.size() == 2 && std::abs(logs[0] - logs[1]) > std::log(kAtOdds);
}

absl::Status SettingsSearch::Screen(KnobState& state, Sight sight, std::vector<Candidate>& candidates) {
  const auto any = [](const Candidate&) { return true; };
  PENSTOCK_RETURN_IF_ERROR(MeasureOnce(state, StillIn(candidates, any), /*back=*/false));
  if (sight == Sight::kSecond) {
    for (Candidate& candidate : candidates) {
      candidate.out = candidate.out || candidate.logs.empty() || candidate.logs[0] > std::log(kClearlyWorse);
      if (!candidate.logs.empty() && candidate.out) state.worse.insert(candidate.value);
      else state.worse.erase(candidate.value);
    }
    PENSTOCK_RETURN_IF_ERROR(MeasureOnce(state, StillIn(candidates, any), /*back=*/true));
    PENSTOCK_RETURN_IF_ERROR(MeasureOnce(state, StillIn(candidates, IsAtOdds), /*back=*/false));
  }
  for (Candidate& candidate : candidates) candidate.trial.ratio = std::exp(MiddleOf(candidate.logs));
  return absl::OkStatus();
}

// In use, value, value, in use, and so on.
absl::Status SettingsSearch::AddPair(KnobState& state, Candidate& candidate) {
  double value = 0, in_use = 0;
  const bool value_first = candidate.logs.size() % 2 == 1;
  if (value_first) {
    PENSTOCK_ASSIGN_OR_RETURN(value, MeasureValue(state, candidate));
    if (candidate.out || over_) return absl::OkStatus();
  }
  PENSTOCK_ASSIGN_OR_RETURN(in_use, MeasureInUse());
  if (!value_first && !over_) {
    PENSTOCK_ASSIGN_OR_RETURN(value, MeasureValue(state, candidate));
  }
  if (value > 0 && in_use > 0) candidate.logs.push_back(std::log(value / in_use));
  return absl::OkStatus();
}

absl::Status SettingsSearch::Compare(KnobState& state, Candidate& candidate, size_t looks) {
  candidate.logs.clear();
  TuneResult::Trial& trial = candidate.trial;
  for (const int look : std::span(kLooks).first(looks)) {
    while (static_cast<int>(candidate.logs.size()) < look) {
      PENSTOCK_RETURN_IF_ERROR(AddPair(state, candidate));
      if (candidate.out) return absl::OkStatus();
      if (over_) break;
    }
    const RatioInterval interval = IntervalOf(candidate.logs);
    if (interval.pairs > 0) trial.ratio = interval.ratio;
    trial.low = interval.low;
    trial.high = interval.high;
    if (over_) {
      trial.verdict = Verdict::kUnfinished;
      return absl::OkStatus();
    }
    if (interval.high < 1 && interval.ratio < 1 / kPromising) {
      trial.verdict = Verdict::kTaken;
      return absl::OkStatus();
    }
    if (interval.low > 1 / kWorthwhile || interval.ratio > 1) return absl::OkStatus();
  }
  return absl::OkStatus();
}

void SettingsSearch::Take(KnobState& state, const Candidate& candidate) {
  result_.settings = With(state, candidate.value);
  result_.after *= candidate.trial.ratio;
  state.in_use = candidate.value;
}

// A value that was tried before, and not taken, has one entry.
void SettingsSearch::Record(TuneResult::Trial trial) {
  if (trial.rounds == 0) return;
  for (TuneResult::Trial& before : result_.tried) {
    if (before.key != trial.key || before.value != trial.value || before.verdict == Verdict::kTaken) continue;
    trial.rounds += before.rounds;
    before = std::move(trial);
    return;
  }
  result_.tried.push_back(std::move(trial));
}

absl::Status SettingsSearch::TryKnob(KnobState& state, Sight sight, bool& taken) {
  const bool at_first = sight == Sight::kFirst;
  std::vector<Candidate> candidates = CandidatesOf(state);
  if (candidates.empty()) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(Screen(state, sight, candidates));
  std::vector<Candidate*> best;
  for (Candidate& candidate : candidates) {
    if (!candidate.out && candidate.trial.ratio < 1 / (at_first ? kFarBetter : kPromising)) best.push_back(&candidate);
  }
  std::sort(best.begin(), best.end(), [](const Candidate* x, const Candidate* y) {
    return std::pair(x->trial.ratio, x->value) < std::pair(y->trial.ratio, y->value);
  });
  if (over_) {
    for (Candidate* const candidate : best) candidate->trial.verdict = Verdict::kUnfinished;
  }
  if (best.size() > kMostChallengers) best.resize(kMostChallengers);
  for (Candidate* const challenger : best) {
    if (taken || over_) break;
    PENSTOCK_RETURN_IF_ERROR(Compare(state, *challenger, at_first ? kLooksAtFirst : std::size(kLooks)));
    taken = challenger->trial.verdict == Verdict::kTaken;
    if (taken) Take(state, *challenger);
  }
  for (Candidate& candidate : candidates) Record(std::move(candidate.trial));
  return absl::OkStatus();
}

void SettingsSearch::KeepFirst(double cost, std::string why) {
  result_.settings = search_.first;
  result_.before = result_.after = cost;
  result_.stopped = std::move(why);
}

// What the whole search has gained: the winners of comparisons look a little better than they are.
absl::Status SettingsSearch::CompareWithFirst() {
  std::vector<double> before, after;
  for (int pair = 0; pair < kPairsAtTheEnd; ++pair) {
    absl::Status first_failed, found_failed;
    PENSTOCK_ASSIGN_OR_RETURN(const double first, Measure(search_.first, "settings before", first_failed));
    PENSTOCK_ASSIGN_OR_RETURN(const double found, MeasureTwice(result_.settings, "settings found", found_failed));
    if (!found_failed.ok()) {
      KeepFirst(before.empty() ? result_.before : MiddleOf(before),
                absl::StrCat("the job failed with the settings found when they were compared with the first ones, "
                             "which are kept: ",
                             found_failed.message()));
      return absl::OkStatus();
    }
    if (over_ || !first_failed.ok()) break;
    before.push_back(first);
    after.push_back(found);
  }
  if (before.empty()) return absl::OkStatus();
  result_.before = MiddleOf(before);
  result_.after = MiddleOf(after);
  if (result_.after < result_.before) return absl::OkStatus();
  KeepFirst(result_.before, "the settings found were no better when compared with the first ones, which are kept");
  return absl::OkStatus();
}

absl::StatusOr<TuneResult> SettingsSearch::Run() {
  PENSTOCK_ASSIGN_OR_RETURN(result_.before, MeasureInUse());
  result_.after = result_.before;
  // What gains most is found first, in case the budget is short.
  for (KnobState& state : states_) {
    bool taken = false;
    PENSTOCK_RETURN_IF_ERROR(TryKnob(state, Sight::kFirst, taken));
  }
  // A choice is settled when it was tried and no other has changed since.
  size_t settled = 0;
  for (size_t k = 0; settled < states_.size() && !over_; k = (k + 1) % states_.size()) {
    bool taken = false;
    PENSTOCK_RETURN_IF_ERROR(TryKnob(states_[k], Sight::kSecond, taken));
    settled = taken ? 0 : settled + 1;
  }
  result_.stopped =
      over_ ? "the budget is spent" : "no value was shown to be more than 2 % better with a confidence of 95 %";
  if (!over_ && result_.settings != search_.first) PENSTOCK_RETURN_IF_ERROR(CompareWithFirst());
  return std::move(result_);
}

}  // namespace

absl::StatusOr<TuneResult> FindSettings(const Search& search) { return SettingsSearch(search).Run(); }

}  // namespace penstock::tune

// The search on made-up jobs, whose cost under all settings is known.
#include "src/tune/find_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/status.h"

namespace penstock::tune::find_settings_test {
namespace {

using ::testing::HasSubstr;

// The places of each choice's value.
using Point = std::vector<size_t>;

// A job whose cost is known, with noise as machines make it: a normal one, and now and then a round that something else
// has disturbed. Its clock goes on by what it costs.
class MadeUpJob {
 public:
  MadeUpJob(std::vector<Knob> knobs, std::function<double(const Point&)> cost, double noise, uint64_t seed)
      : knobs_(std::move(knobs)), cost_(std::move(cost)), noise_(noise), random_(seed) {}

  Search search(double budget_s = 1e9) {
    return {.first = {},
            .knobs = knobs_,
            .budget_s = budget_s,
            .measure = [this](const Settings& settings) { return Measure(settings); },
            .now = [this] { return time_; }};
  }
  absl::StatusOr<double> Measure(const Settings& settings) {
    const double cost =
        CostOf(settings) * std::pow(drift_, rounds_) * std::exp(std::normal_distribution<double>(0, noise_)(random_));
    const bool disturbed = noise_ > 0 && std::uniform_real_distribution<double>()(random_) < 0.03;
    time_ += disturbed ? 1.5 * cost : cost;
    ++rounds_;
    if (refuse_ && refuse_(settings)) return absl::ResourceExhaustedError("no memory");
    return disturbed ? 1.5 * cost : cost;
  }
  double CostOf(const Settings& settings) const { return cost_(PointOf(settings)); }
  double BestCost() const {
    double best = INFINITY;
    Point point(knobs_.size());
    for (bool more = true; more;) {
      best = std::min(best, cost_(point));
      more = false;
      for (size_t k = 0; k < point.size() && !more; ++k) {
        more = ++point[k] < knobs_[k].values.size();
        if (!more) point[k] = 0;
      }
    }
    return best;
  }
  // Each round costs so many times what the one before does.
  void Drift(double factor) { drift_ = factor; }
  void Refuse(std::function<bool(const Settings&)> refuse) { refuse_ = std::move(refuse); }
  double time() const { return time_; }
  int rounds() const { return rounds_; }

 private:
  // Which point has these settings, found by setting each value.
  Point PointOf(const Settings& settings) const {
    Point point;
    for (const Knob& knob : knobs_) {
      const auto is_it = [&](const std::string& value) {
        Settings with = settings;
        return with.Set(knob.key, value).ok() && with == settings;
      };
      point.push_back(
          static_cast<size_t>(std::find_if(knob.values.begin(), knob.values.end(), is_it) - knob.values.begin()));
    }
    return point;
  }

  const std::vector<Knob> knobs_;
  const std::function<double(const Point&)> cost_;
  const double noise_;
  std::mt19937_64 random_;
  std::function<bool(const Settings&)> refuse_;
  double time_ = 0, drift_ = 1;
  int rounds_ = 0;
};

std::vector<Knob> AllKnobs() {
  return KnobsOf({"graph \"g\".mode", "graph \"g\".slots", "runtime.staging_chunk_bytes", "runtime.staging_threads",
                  "runtime.workers"},
                 {}, 64);
}

// A bowl in a random place with a random depth for each choice, and steps that cost nothing below the noise. The first
// value, the library's choice, costs as much as a random other one.
std::function<double(const Point&)> RandomBowl(const std::vector<Knob>& knobs, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<double>> factors;
  for (const Knob& knob : knobs) {
    const size_t values = knob.values.size();
    const double best = std::uniform_real_distribution<double>(1, static_cast<double>(values) - 1)(random);
    const double depth = std::uniform_real_distribution<double>(0, 0.5)(random);
    std::vector<double> factor(values);
    for (size_t v = 1; v < values; ++v) {
      factor[v] = 1 + depth * std::pow(std::abs(static_cast<double>(v) - best), 1.5);
    }
    factor[0] = factor[1 + random() % (values - 1)];
    factors.push_back(factor);
  }
  return [factors](const Point& point) {
    double cost = 1;
    for (size_t k = 0; k < point.size(); ++k) cost *= factors[k][point[k]];
    return cost;
  };
}

TEST(FindSettings, FindsTheBestWithoutNoise) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    MadeUpJob job(AllKnobs(), RandomBowl(AllKnobs(), seed), 0, seed);
    const absl::StatusOr<TuneResult> found = FindSettings(job.search());
    ASSERT_OK(found.status());
    // Of each choice a value may be up to 1 % worse than the best, which is too little to look at.
    EXPECT_LE(job.CostOf(found->settings), job.BestCost() * 1.03) << "seed " << seed;
    EXPECT_DOUBLE_EQ(found->after, job.CostOf(found->settings)) << "seed " << seed;
    EXPECT_THAT(found->stopped, HasSubstr("more than 2 % better"));
  }
}

TEST(FindSettings, FindsNearlyTheBestUnderNoise) {
  constexpr int kSeeds = 200;
  int near = 0, far = 0, rounds = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    MadeUpJob job(AllKnobs(), RandomBowl(AllKnobs(), seed), 0.01, seed);
    const absl::StatusOr<TuneResult> found = FindSettings(job.search());
    ASSERT_OK(found.status());
    const double share = job.CostOf(found->settings) / job.BestCost();
    near += share <= 1.03 ? 1 : 0;
    far += share > 1.10 ? 1 : 0;
    rounds += found->rounds;
  }
  EXPECT_GE(near, kSeeds * 95 / 100);
  EXPECT_LE(far, kSeeds / 100);
  EXPECT_LE(rounds / kSeeds, 200);
}

// The last choice is worth much, and the noise of those before it would take more than the budget to see through.
TEST(FindSettings, FindsALargeGainFirst) {
  const std::vector<Knob> knobs = AllKnobs();
  const auto cost = [&](const Point& point) {
    const bool last = knobs.back().values[point.back()] == "8";
    return last ? 0.3 : 1.0;
  };
  for (uint64_t seed = 0; seed < 50; ++seed) {
    MadeUpJob job(knobs, cost, 0.15, seed);
    const absl::StatusOr<TuneResult> found = FindSettings(job.search(90));
    ASSERT_OK(found.status());
    EXPECT_THAT(found->settings.Text(), HasSubstr("runtime.workers = 8")) << "seed " << seed;
  }
}

// Chunks and threads that fit together: what is best for one depends on the other.
TEST(FindSettings, FollowsChoicesThatDependOnEachOther) {
  const std::vector<Knob> knobs = KnobsOf({"runtime.staging_chunk_bytes", "runtime.staging_threads"}, {}, 64);
  const auto cost = [](const Point& point) {
    const double threads = point[0] == 0 ? 2 : static_cast<double>(point[0]);
    const double chunk = point[1] == 0 ? 1 : static_cast<double>(point[1]);
    return 1 + 0.1 * std::pow(threads + chunk - 7, 2) + 0.05 * std::pow(threads - chunk - 1, 2);
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    MadeUpJob job(knobs, cost, 0.01, seed);
    EXPECT_LE(job.CostOf(FindSettings(job.search())->settings), job.BestCost() * 1.03) << "seed " << seed;
  }
}

TEST(FindSettings, TakesNoNoiseForAGain) {
  int taken = 0, compared = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    MadeUpJob job(AllKnobs(), [](const Point&) { return 1.0; }, 0.04, seed);
    const absl::StatusOr<TuneResult> found = FindSettings(job.search());
    ASSERT_OK(found.status());
    for (const TuneResult::Trial& trial : found->tried) {
      compared += trial.high > 0 ? 1 : 0;
      taken += trial.verdict == Verdict::kTaken ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 500);
  EXPECT_LE(taken, compared * 25 / 1000);  // half of 5 %: the other half is on the other side
}

// A machine that gets faster all the while: whatever is measured later looks better.
TEST(FindSettings, TakesNoDriftForAGain) {
  for (const double drift : {0.98, 1.02}) {
    MadeUpJob job(AllKnobs(), [](const Point&) { return 1.0; }, 0, 1);
    job.Drift(drift);
    const absl::StatusOr<TuneResult> found = FindSettings(job.search());
    ASSERT_OK(found.status());
    EXPECT_EQ(found->settings, Settings()) << found->settings.Text();
  }
}

TEST(FindSettings, EndsWithinTheBudget) {
  for (const double budget : {0.5, 20.0, 60.0, 100.0}) {
    MadeUpJob job(AllKnobs(), RandomBowl(AllKnobs(), 7), 0.01, 7);
    const absl::StatusOr<TuneResult> found = FindSettings(job.search(budget));
    ASSERT_OK(found.status());
    EXPECT_THAT(found->stopped, HasSubstr("budget"));
    EXPECT_EQ(found->rounds, job.rounds());
    if (found->rounds > 1) {
      EXPECT_LE(job.time(), budget);
    }
  }
}

TEST(FindSettings, IsTheSameForTheSameTimes) {
  const auto tried = [] {
    MadeUpJob job(AllKnobs(), RandomBowl(AllKnobs(), 3), 0.03, 3);
    const absl::StatusOr<TuneResult> found = FindSettings(job.search());
    std::string text;
    for (const TuneResult::Trial& t : found->tried) {
      text += t.key + " " + t.value + " " + std::to_string(t.ratio) + " " + std::to_string(t.rounds) + "\n";
    }
    return text;
  };
  EXPECT_EQ(tried(), tried());
}

TEST(FindSettings, RefusesWhatFailsAndGoesOn) {
  const std::vector<Knob> knobs = KnobsOf({"graph \"g\".slots", "graph \"g\".mode"}, {}, 64);
  MadeUpJob job(knobs, [](const Point& point) { return 10.0 / static_cast<double>(1 + point[0]); }, 0.01, 1);
  job.Refuse([](const Settings& settings) {
    return settings.graphs.contains("g") && settings.graphs.at("g").slots.value_or(0) > 4;
  });
  const absl::StatusOr<TuneResult> found = FindSettings(job.search());
  ASSERT_OK(found.status());
  EXPECT_EQ(found->settings.Text(), "penstock settings 1\ngraph \"g\".slots = 4\nend\n");
  int refused = 0;
  for (const TuneResult::Trial& trial : found->tried) {
    if (trial.verdict != Verdict::kRefused) continue;
    ++refused;
    EXPECT_EQ(trial.why, "no memory");
    EXPECT_EQ(trial.rounds, 1);
  }
  EXPECT_EQ(refused, 2);  // 8 and 16, once each
}

// What it begins with counts as in use, whether it is among the values or not.
TEST(FindSettings, BeginsWithSettings) {
  const std::vector<Knob> knobs = KnobsOf({"graph \"g\".slots"}, {}, 64);
  for (const int first : {4, 5}) {
    MadeUpJob job(knobs, [&](const Point& point) { return point[0] == (first == 4 ? 4u : 7u) ? 1.0 : 2.0; }, 0, 1);
    Search search = job.search();
    search.first.graphs["g"].slots = first;
    const absl::StatusOr<TuneResult> found = FindSettings(search);
    ASSERT_OK(found.status());
    EXPECT_EQ(found->settings, search.first);
    for (const TuneResult::Trial& trial : found->tried) EXPECT_NE(trial.value, std::to_string(first));
    EXPECT_EQ(found->tried.size(), first == 4 ? 6u : 7u);
  }
}

TEST(FindSettings, EndsIfTheJobFailsAsItIs) {
  MadeUpJob job(AllKnobs(), [](const Point&) { return 1.0; }, 0, 1);
  job.Refuse([](const Settings&) { return true; });
  const absl::Status failed = FindSettings(job.search()).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(failed), HasSubstr("the settings in use: no memory"));
  EXPECT_EQ(job.rounds(), 2);  // it is tried once more
  MadeUpJob late(AllKnobs(), [](const Point&) { return 1.0; }, 0, 1);
  late.Refuse([](const Settings&) { return true; });
  EXPECT_EQ(FindSettings(late.search(1.5)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(late.rounds(), 1);  // there is no time for that
}

TEST(FindSettings, GoesOnIfTheJobFailsOnce) {
  for (const int fails : {1, 2, 5, 30}) {
    MadeUpJob job(AllKnobs(), RandomBowl(AllKnobs(), 7), 0, 7);
    int in_use = 0;  // rounds with the first settings
    job.Refuse([&](const Settings& settings) { return settings == Settings() && ++in_use == fails; });
    const absl::StatusOr<TuneResult> found = FindSettings(job.search());
    ASSERT_OK(found.status());
    EXPECT_LE(job.CostOf(found->settings), job.BestCost() * 1.03) << fails;
  }
}

// What was found is dropped if it turns out at the end to be no better, or not to work.
TEST(FindSettings, KeepsTheFirstSettingsIfTheOthersFallShort) {
  const std::vector<Knob> knobs = KnobsOf({"graph \"g\".mode"}, {}, 64);
  for (const bool fails : {false, true}) {
    MadeUpJob job(knobs, [](const Point& point) { return point[0] == 1 ? 1.0 : 2.0; }, 0, 1);
    Search search = job.search();
    bool at_the_end = false;
    search.progress = [&](const Progress& at) {
      at_the_end = at_the_end || at.what == "settings found";
      return true;
    };
    search.measure = [&](const Settings& settings) -> absl::StatusOr<double> {
      const absl::StatusOr<double> cost = job.Measure(settings);
      if (!at_the_end || settings == Settings()) return cost;
      if (fails) return absl::AbortedError("no luck");
      return 2.5;
    };
    const absl::StatusOr<TuneResult> found = FindSettings(search);
    ASSERT_OK(found.status());
    EXPECT_EQ(found->settings, Settings());
    EXPECT_EQ(found->before, 2);
    EXPECT_EQ(found->after, 2);
    EXPECT_THAT(found->stopped, HasSubstr(fails ? "no luck" : "no better"));
    EXPECT_EQ(found->tried[0].verdict, Verdict::kTaken);
  }
}

TEST(FindSettings, IsCancelledByItsProgress) {
  MadeUpJob job(AllKnobs(), [](const Point&) { return 1.0; }, 0, 1);
  Search search = job.search(50);
  std::vector<std::string> told;
  search.progress = [&](const Progress& at) {
    told.emplace_back(at.what);
    EXPECT_EQ(at.total, 100);
    return told.size() < 5;
  };
  EXPECT_EQ(FindSettings(search).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(job.rounds(), 4);
  EXPECT_THAT(told, ::testing::Contains("graph \"g\".slots = 1"));
}

TEST(FindSettings, HasNothingToDoWithoutChoices) {
  MadeUpJob job({}, [](const Point&) { return 1.0; }, 0, 1);
  EXPECT_EQ(FindSettings(job.search())->rounds, 1);
}

TEST(Knobs, AreTheChoicesThatAreOpenAndWanted) {
  const std::vector<std::string> open = {
      "graph \"a\".mode", "graph \"a\".slots",           "graph \"b\".slots", "runtime.workers",
      "no key",           "runtime.from_a_newer_library"};
  const auto keys = [&](const std::vector<std::string>& only) {
    std::vector<std::string> of;
    for (const Knob& knob : KnobsOf(open, only, 4)) of.push_back(knob.key);
    return of;
  };
  EXPECT_THAT(keys({}),
              ::testing::ElementsAre("graph \"a\".slots", "graph \"b\".slots", "graph \"a\".mode", "runtime.workers"));
  EXPECT_THAT(keys({"slots"}), ::testing::ElementsAre("graph \"a\".slots", "graph \"b\".slots"));
  EXPECT_THAT(keys({"graph \"b\".slots", "mode"}), ::testing::ElementsAre("graph \"b\".slots", "graph \"a\".mode"));
  EXPECT_THAT(KnobsOf(open, {"workers"}, 4)[0].values, ::testing::ElementsAre("", "1", "2", "4", "8"));
}

// Each value is one that a settings file may have.
TEST(Knobs, HaveValuesThatMayBeSet) {
  Settings settings;
  for (const Knob& knob :
       KnobsOf({"graph \"g\".slots", "graph \"g\".mode", "graph \"g\".resident", "graph \"g\".max_lanes",
                "stage \"s\".workers", "pipeline \"p\".window", "runtime.workers", "runtime.submission_threads",
                "runtime.staging_threads", "runtime.staging_chunk_bytes"},
               {}, 64)) {
    EXPECT_EQ(knob.values.front(), "");
    for (const std::string& value : knob.values) EXPECT_OK(settings.Set(knob.key, value));
  }
}

}  // namespace
}  // namespace penstock::tune::find_settings_test

// FindSettings: the search for the best settings, given a way to measure and a clock. penstock/tune.h says how it goes.
//
// It is a coordinate descent. At first sight each value of each choice is measured once, and what looks far better than
// what is in use is compared by a few pairs; so a large gain is found though the budget may be spent long before all
// has been looked at closely. Then the choices are taken in turn until none has more to give. For a choice, all its
// values are measured beside what is in use, forth and back (A b c d, d c b A). A value that is clearly worse in the
// first of the two goes at once, and is later tried again only if what is in use has come to lie next to it; one whose
// two measurements are at odds gets a third. What looks at least 1 % better, at most two values, is then compared by
// pairs that take no part in the choice of the value, so that luck in the first measurements is not taken for a gain.
// What was found is compared with the first settings at the end, which are kept if it is no better then.
//
// Threads: one thread. With the same measurements and times the result is the same.
// Errors:  those of the measurement with the settings in use, if it fails twice in a row, and Cancelled.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/progress.h"
#include "penstock/settings.h"
#include "penstock/tune.h"
#include "src/tune/knobs.h"

namespace penstock::tune {

struct Search {
  Settings first{};  // what it begins with
  std::vector<Knob> knobs;
  double budget_s = 0;
  // Runs one round, and returns its cost, above 0.
  std::function<absl::StatusOr<double>(const Settings&)> measure;
  std::function<double()> now;  // in seconds
  ProgressFunction progress{};
};

absl::StatusOr<TuneResult> FindSettings(const Search& search);

}  // namespace penstock::tune

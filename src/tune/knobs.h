// Knobs: the choices that a search tries, each with the values that are worth a try.
//
// Threads: plain values and pure functions.
#pragma once

#include <string>
#include <vector>

namespace penstock::tune {

struct Knob {
  std::string key;  // as Settings::Set takes it
  std::vector<std::string> values;  // in order; empty, which comes first: as without a setting
};

// Of the keys that a program leaves open, those that `only` names, by the key or by its last part; all if it is empty.
// Those that move most come first. No value asks for more threads than twice the `cores`.
std::vector<Knob> KnobsOf(const std::vector<std::string>& open, const std::vector<std::string>& only, int cores);

}  // namespace penstock::tune

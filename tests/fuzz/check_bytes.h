// What the fuzzer and the replay of its corpus do with one input: declare a graph as the bytes say, plan it for several
// lists of devices, and run it where it is right and small.
//
// Threads: one at a time: the runtime it runs on is made once and kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace penstock::fuzz {

// What became of the input, for counting.
struct Outcome {
  std::string problem;  // empty: everything held
  bool accepted = false;  // planned for two host devices
  bool ran = false;  // compiled, and launched or refused at launch
  int64_t told = 0;  // values that runs have changed as an interpreter said; of algorithms only
};
Outcome CheckBytes(std::span<const uint8_t> bytes);

}  // namespace penstock::fuzz

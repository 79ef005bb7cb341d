// What the fuzzer and the replay of its corpus do with one input: read it as a profile and, if it is one, write it,
// read it again, and show it in every way.
//
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>

namespace penstock::fuzz {

struct ProfileOutcome {
  std::string problem;  // empty: everything held
  bool accepted = false;  // it was read as a profile
};
ProfileOutcome CheckProfileBytes(std::string_view bytes);

}  // namespace penstock::fuzz

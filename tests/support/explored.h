// What tests of lock-free parts expect of an exploration of schedules (interleave.h), and the model of the event count.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "src/host/event_count.h"
#include "tests/support/interleave.h"
#include "tests/support/sanitized.h"

namespace penstock::interleave {

using ModelBell = host::BasicEventCount<ModelAtomic, ModelMutex, ModelCondVar>;

inline constexpr auto kForever = std::chrono::steady_clock::time_point::max();

// Every schedule was tried (under a sanitizer: some), and none went wrong.
inline void ExpectSound(const Explored& explored) {
  EXPECT_EQ(explored.problem, "");
  EXPECT_TRUE(explored.all || kSanitized) << "there are more schedules than " << explored.schedules;
  std::cout << explored.schedules << " schedules\n";
}

// A mistake planted in the model was found: the exploration looks closely enough.
inline void ExpectFound(const Explored& explored, const char* problem) {
  EXPECT_NE(explored.problem.find(problem), std::string::npos)
      << explored.schedules << " schedules; found '" << explored.problem << "'";
}

}  // namespace penstock::interleave

// QuickDeaths: settings of a death test, for as long as the object lives. Each death happens in a process that starts
// again from main, since the test has threads. A sanitizer's report of it names no functions, which would take seconds.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/environment.h"

namespace penstock {

class QuickDeaths {
 public:
  QuickDeaths() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

 private:
  static std::string WithoutNames(const char* variable) {
    const char* const before = std::getenv(variable);
    return std::string(before == nullptr ? "" : before) + ":symbolize=0";
  }

  const EnvironmentScope asan_{"ASAN_OPTIONS", WithoutNames("ASAN_OPTIONS")};
  const EnvironmentScope tsan_{"TSAN_OPTIONS", WithoutNames("TSAN_OPTIONS")};
};

}  // namespace penstock

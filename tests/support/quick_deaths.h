// For a test of deaths, while it lives: each death happens in a process that starts anew, since the test has threads,
// and a sanitizer's report of it names no functions, which would take seconds.
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

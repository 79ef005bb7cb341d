// Statuses in tests: expectations that print what went wrong, and the text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

#define ASSERT_OK(expr) ASSERT_EQ((expr), absl::OkStatus())
#define EXPECT_OK(expr) EXPECT_EQ((expr), absl::OkStatus())

namespace penstock {

inline std::string Text(const absl::Status& status) { return {status.message().data(), status.message().size()}; }

}  // namespace penstock

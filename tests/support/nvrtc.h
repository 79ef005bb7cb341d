// Whether this machine has NVRTC, which needs no GPU, and what tests say where it has none.
#pragma once

#include <gtest/gtest.h>

#include "src/jit/nvrtc.h"

#define PENSTOCK_SKIP_WITHOUT_NVRTC()                                                \
  if (const auto nvrtc_of_test = ::penstock::jit::Nvrtc::Get(); !nvrtc_of_test.ok()) \
  GTEST_SKIP() << nvrtc_of_test.status()

// What tests of a run's life start from: a graph whose host node stays inside its callable until the test lets it go,
// with a host node behind it.
//
//   hold (x, while the latch is shut) -> after (x[0] += 1, counted)
//
// Threads: thread-safe but for the declaration.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "penstock/runtime.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock {

struct HeldGraph {
  Graph graph{"held"};
  BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4);
  driver::Latch latch;
  std::atomic<int> after{0};

  HeldGraph() {
    graph.Host("hold", [this](std::span<int32_t>) { latch.Arrive(); }, ReadWrite(x));
    graph.Host(
        "after",
        [this](std::span<int32_t> v) {
          ++v[0];
          ++after;
        },
        ReadWrite(x));
  }
};

}  // namespace penstock

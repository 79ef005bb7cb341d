// AllocatedBytes: what is added and not removed counts.
#include "src/driver/cuda/allocated_bytes.h"

#include <gtest/gtest.h>

namespace penstock::driver::allocated_bytes_test {
namespace {

TEST(AllocatedBytes, AreThoseOfBlocksThatAreNotFreed) {
  AllocatedBytes bytes;
  char memory[3];
  bytes.Add(&memory[0], 100);
  bytes.Add(&memory[1], 20);
  EXPECT_EQ(bytes.get(), 120);
  bytes.Remove(&memory[0]);
  bytes.Remove(&memory[2]);  // of another
  EXPECT_EQ(bytes.get(), 20);
  bytes.Add(&memory[0], 3);  // the address is given out again
  EXPECT_EQ(bytes.get(), 23);
}

}  // namespace
}  // namespace penstock::driver::allocated_bytes_test

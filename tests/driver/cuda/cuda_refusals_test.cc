// What is read from the driver's log. Needs no GPU and no driver; the lines are as release 580 writes them.
#include "src/driver/cuda/cuda_refusals.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::driver::cuda_refusals_test {
namespace {

std::string Line(unsigned long thread, const std::string& text, const char* level = "E") {
  return "[04:07:53.907][" + std::to_string(thread) + "][CUDA][" + level + "] " + text + "\n";
}

TEST(ErrorsOfThread, AreThoseOfTheThreadAlone) {
  EXPECT_EQ(ErrorsOfThread("", 7), "");
  const std::string log = Line(77, "Allocation not found") + Line(7, "Returning 900 from cuMemcpyBatchAsync_v2") +
                          Line(17, "[7][ of another thread") + Line(7, "a warning", "W");
  EXPECT_EQ(ErrorsOfThread(log, 7), "Returning 900 from cuMemcpyBatchAsync_v2");
  EXPECT_EQ(ErrorsOfThread(log, 8), "");
}

TEST(ErrorsOfThread, AreJoinedEachOnceAndOfManyThreeAreQuoted) {
  std::string log;
  for (const char* text : {"a", "b", "a", "c", "d", "e", "d"}) log += Line(7, text);
  EXPECT_EQ(ErrorsOfThread(log, 7), "a; b; c; and 3 more");
}

// cuBLAS loads a library while the stream captures: no call was refused.
TEST(ErrorsOfThread, AreNotWhatLoadingALibraryLooksForInVain) {
  const std::string log = Line(7, "Kernel ($__internal_23_$__cuda_sm20_rem_u64) cannot be found in library");
  EXPECT_EQ(ErrorsOfThread(log, 7), "");
  EXPECT_EQ(ErrorsOfThread(log + Line(7, "a"), 7), "a");
}

TEST(ErrorsOfThread, LinesThatWereLostCountAsTheThreads) {
  const std::string lost = "Log buffer has rolled over since the previous dump. The oldest messages will be missing";
  EXPECT_EQ(ErrorsOfThread(lost + "\n" + Line(9, "another thread's"), 7), lost);
}

}  // namespace
}  // namespace penstock::driver::cuda_refusals_test

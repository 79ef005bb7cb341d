// How a host device waits for the host: until the answer, until it is told that none will come, or, where the host has
// gone, to its last resort.
#include "src/driver/host/hostcall_kernel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "src/driver/hostcall_slot.h"

namespace penstock::driver::host::hostcall_kernel_test {
namespace {

constexpr uint64_t kLong = uint64_t{60} * 1000 * 1000 * 1000;

uint64_t Load(uint64_t& of) { return std::atomic_ref<uint64_t>(of).load(std::memory_order_acquire); }

// Asks on a thread of its own, and answers what it asks with `bits` beside the number.
void AskAndAnswer(HostcallSlot& question, uint64_t bits) {
  HostcallArgs args{&question, kLong};
  void* argv = &args;
  std::thread device([&] { EXPECT_TRUE(Ask(nullptr, &argv).ok()); });
  uint64_t number = 0;
  while ((number = Load(question.asked)) == 0) std::this_thread::yield();
  std::atomic_ref<uint64_t>(question.answered).store(number | bits, std::memory_order_release);
  device.join();
}

TEST(HostAsk, EndsWithTheAnswer) {
  HostcallSlot question;
  AskAndAnswer(question, 0);
  EXPECT_EQ(question.unanswered, 0u);
}

TEST(HostAsk, EndsWhereTheHostGivesItUp) {
  HostcallSlot question;
  AskAndAnswer(question, kGivenUp);
  EXPECT_EQ(question.unanswered, 0u) << "it was told";
}

TEST(HostAsk, EndsAtItsLastResortWhereTheHostHasGone) {
  HostcallSlot question;
  HostcallArgs args{&question, 1000};
  void* argv = &args;
  EXPECT_TRUE(Ask(nullptr, &argv).ok());
  EXPECT_EQ(question.unanswered, question.asked);
}

}  // namespace
}  // namespace penstock::driver::host::hostcall_kernel_test

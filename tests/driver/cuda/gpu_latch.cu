#include "tests/driver/cuda/gpu_latch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "penstock/detail/cuda_kernel.h"

namespace penstock::driver {

struct GpuLatch::Words {
  uint32_t running, released, timed_out, probe;
};

namespace {

constexpr uint64_t kTimeOutNs = 10'000'000'000;

__device__ uint64_t NowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void HoldKernel(volatile uint32_t* running, volatile uint32_t* released, volatile uint32_t* timed_out) {
  *running = 1;
  __threadfence_system();
  const uint64_t begin = NowNs();
  while (*released == 0) {
    if (NowNs() - begin > kTimeOutNs) {
      *timed_out = 1;
      break;
    }
    __nanosleep(100);
  }
  __threadfence_system();
}

__global__ void ProbeKernel(volatile uint32_t* released, volatile uint32_t* probe) { *probe = *released == 0 ? 1 : 2; }

uint32_t Read(const uint32_t& word) {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(word)).load(std::memory_order_acquire);
}

const void* Load(Driver& driver, const void* stub) {
  const absl::StatusOr<KernelCode> kernel = driver.LoadKernel(0, {&detail::LoadCudaKernel, stub});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? kernel->kernel : nullptr;
}

}  // namespace

GpuLatch::GpuLatch(Driver& driver) : driver_(driver) {
  const absl::StatusOr<void*> memory = driver.AllocatePinned(sizeof(Words));
  EXPECT_TRUE(memory.ok()) << memory.status();
  if (memory.ok()) words_ = new (*memory) Words{};
  hold_ = Load(driver, reinterpret_cast<const void*>(&HoldKernel));
  probe_ = Load(driver, reinterpret_cast<const void*>(&ProbeKernel));
}

GpuLatch::~GpuLatch() { driver_.FreePinned(words_); }

absl::Status GpuLatch::Hold(Stream stream) {
  uint32_t* words[] = {&words_->running, &words_->released, &words_->timed_out};
  void* argv[] = {&words[0], &words[1], &words[2]};
  return driver_.Launch(stream, {.kernel = hold_, .argv = argv, .argc = 3});
}

absl::Status GpuLatch::Probe(Stream stream) {
  uint32_t* words[] = {&words_->released, &words_->probe};
  void* argv[] = {&words[0], &words[1]};
  return driver_.Launch(stream, {.kernel = probe_, .argv = argv, .argc = 2});
}

bool GpuLatch::AwaitRunning() const {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (Read(words_->running) == 0) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

void GpuLatch::Release() { std::atomic_ref<uint32_t>(words_->released).store(1, std::memory_order_release); }

bool GpuLatch::timed_out() const { return Read(words_->timed_out) != 0; }
GpuLatch::Seen GpuLatch::probe() const { return static_cast<Seen>(Read(words_->probe)); }

}  // namespace penstock::driver

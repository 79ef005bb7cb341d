// The driver interface's calls on a real device, one by one. Fills, kernels and overlap have files of their own.
#include "src/driver/cuda/cuda_driver.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <thread>

#include "penstock/cuda.h"
#include "src/base/status.h"
#include "src/driver/cuda/cuda_context.h"
#include "src/driver/cuda/cuda_status.h"
#include "tests/driver/cuda/gpu_latch.h"
#include "tests/driver/cuda/gpu_test.h"
#include "tests/support/status.h"

namespace penstock::driver::cuda_driver_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using CudaDriverTest = GpuTest;

// Leaves an error behind that none of our calls has made.
void SeedStaleError() {
  ASSERT_NE(cudaSetDevice(1 << 20), cudaSuccess);
  ASSERT_NE(cudaPeekAtLastError(), cudaSuccess);
}

CUcontext CurrentContext() {
  void* found = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &found, 4000, cudaEnableDefault), cudaSuccess);
  CUcontext current = nullptr;
  EXPECT_EQ(reinterpret_cast<PFN_cuCtxGetCurrent_v4000>(found)(&current), CUDA_SUCCESS);
  return current;
}

TEST_F(CudaDriverTest, DescribesItsDevices) {
  ASSERT_EQ(driver_->device_count(), *CudaDeviceCount());
  const DeviceInfo& info = driver_->device(0);
  EXPECT_EQ(info.kind, DeviceKind::kCuda);
  EXPECT_EQ(info.name, "cuda:0");
  EXPECT_FALSE(info.description.empty());
  EXPECT_GT(info.memory_bytes, int64_t{1} << 28);
  EXPECT_GT(info.compute_units, 0);
  EXPECT_FALSE(driver_->notifies_completion());
}

TEST_F(CudaDriverTest, RefusesADeviceThatDoesNotExist) {
  const int count = *CudaDeviceCount();
  for (const int ordinal : {count, -1}) {
    const absl::Status status = CreateCudaDriver({.ordinals = {ordinal}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(Text(status), AllOf(HasSubstr("cuda:" + std::to_string(ordinal) + " does not exist"),
                                    HasSubstr("sees " + std::to_string(count) + " CUDA device")));
  }
}

TEST_F(CudaDriverTest, RefusesADeviceNamedTwice) {
  const absl::Status status = CreateCudaDriver({.ordinals = {0, 0}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), HasSubstr("cuda:0 is named twice"));
}

TEST_F(CudaDriverTest, CreationLeavesTheThreadWithoutADevice) {
  std::thread([] {
    const auto driver = CreateCudaDriver({});
    EXPECT_TRUE(driver.ok());
    EXPECT_EQ(CurrentContext(), nullptr);
  }).join();
}

TEST_F(CudaDriverTest, RestoringLeavesTheThreadAsItWas) {
  std::thread([this] {
    const int outer = driver_->MakeCurrent(0);
    int ordinal = -1;
    EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
    EXPECT_EQ(ordinal, 0);
    const CUcontext made = CurrentContext();
    EXPECT_NE(made, nullptr);
    const int inner = driver_->MakeCurrent(0);
    driver_->RestoreCurrent(inner);
    EXPECT_EQ(CurrentContext(), made);
    driver_->RestoreCurrent(outer);
    EXPECT_EQ(CurrentContext(), nullptr);
  }).join();
}

TEST_F(CudaDriverTest, StreamsDoNotBlockTheDefaultStreamAndClampPriorities) {
  int lowest = 0, highest = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&lowest, &highest), cudaSuccess);
  const std::pair<int, int> asked_and_given[] = {{0, 0}, {1000, lowest}, {-1000, highest}};
  for (const auto& [asked, given] : asked_and_given) {
    const absl::StatusOr<Stream> stream = driver_->CreateStream(0, asked);
    ASSERT_TRUE(stream.ok()) << stream.status();
    const auto native = static_cast<cudaStream_t>(driver_->NativeStream(*stream));
    unsigned flags = 0;
    int priority = 77;
    EXPECT_EQ(cudaStreamGetFlags(native, &flags), cudaSuccess);
    EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
    EXPECT_EQ(cudaStreamGetPriority(native, &priority), cudaSuccess);
    EXPECT_EQ(priority, given);
    driver_->DestroyStream(*stream);
  }
}

TEST_F(CudaDriverTest, EventNeverRecordedIsComplete) { EXPECT_TRUE(*driver_->Query(NewEvent())); }

TEST_F(CudaDriverTest, TimingEventsMeasureAndOthersRefuse) {
  const Event begin = *driver_->CreateEvent(0, true), end = *driver_->CreateEvent(0, true);
  std::byte* const memory = Device(1 << 20);
  ASSERT_TRUE(driver_->Record(begin, stream_).ok());
  ASSERT_TRUE(driver_->Fill(stream_, {.dst = memory, .count = 1 << 20}).ok());
  ASSERT_TRUE(driver_->Record(end, stream_).ok());
  ASSERT_TRUE(Finish(end).ok());
  const absl::StatusOr<double> microseconds = driver_->Elapsed(begin, end);
  ASSERT_TRUE(microseconds.ok()) << microseconds.status();
  EXPECT_GT(*microseconds, 0.0);
  float milliseconds = 0;
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, reinterpret_cast<cudaEvent_t>(begin.bits),
                                 reinterpret_cast<cudaEvent_t>(end.bits)),
            cudaSuccess);
  EXPECT_NEAR(*microseconds, 1000.0 * milliseconds, 0.01);

  const Event untimed = NewEvent();
  ASSERT_TRUE(driver_->Record(untimed, stream_).ok());
  ASSERT_TRUE(Finish(untimed).ok());
  EXPECT_EQ(driver_->Elapsed(begin, untimed).status().code(), absl::StatusCode::kInvalidArgument);
  driver_->DestroyEvent(begin);
  driver_->DestroyEvent(end);
}

TEST_F(CudaDriverTest, QueryOfPendingWorkSaysNoAndLeavesNoErrorBehind) {
  GpuLatch latch(*driver_);
  const Event event = NewEvent();
  ASSERT_TRUE(latch.Hold(stream_).ok());
  ASSERT_TRUE(driver_->Record(event, stream_).ok());
  const absl::StatusOr<bool> done = driver_->Query(event);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_FALSE(*done);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  latch.Release();
  EXPECT_TRUE(Finish(event).ok());
  EXPECT_FALSE(latch.timed_out());
}

TEST_F(CudaDriverTest, DeviceMemoryIsAligned) {
  for (const size_t bytes : {1, 255, 257, 100000}) EXPECT_EQ(reinterpret_cast<uintptr_t>(Device(bytes)) % 256, 0u);
}

TEST_F(CudaDriverTest, NoBytesAreNoMemory) {
  EXPECT_TRUE(driver_->AllocateDevice(0, 0).ok());
  driver_->FreeDevice(0, nullptr);
  driver_->FreePinned(nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaDriverTest, TooMuchDeviceMemoryNamesTheBytes) {
  const size_t bytes = size_t{1} << 50;
  const absl::Status status = driver_->AllocateDevice(0, bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("allocating 1125899906842624 bytes on cuda:0 ("),
                                  HasSubstr(" bytes are free)"), HasSubstr("out of memory")));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_NE(Device(256), nullptr);  // the device works on
}

TEST_F(CudaDriverTest, TooMuchPinnedMemoryIsResourceExhausted) {
  const absl::Status status = driver_->AllocatePinned(size_t{1} << 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(status), HasSubstr("allocating 1125899906842624 bytes of pinned memory"));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaDriverTest, InspectKnowsKindsOfMemory) {
  using Kind = PointerInfo::Kind;
  const auto kind_of = [this](const void* memory) { return driver_->Inspect(memory).value().kind; };
  std::byte* const pinned = Pinned(4096);
  EXPECT_EQ(kind_of(pinned), Kind::kPinned);
  EXPECT_EQ(kind_of(pinned + 4095), Kind::kPinned);

  std::byte* const device = Device(4096);
  const PointerInfo info = driver_->Inspect(device + 100).value();
  EXPECT_EQ(info.kind, Kind::kDevice);
  EXPECT_EQ(info.device, 0);

  int local = 0;
  EXPECT_EQ(kind_of(&local), Kind::kPageable);
  EXPECT_EQ(kind_of(nullptr), Kind::kPageable);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaDriverTest, InspectNeedsNoCurrentDevice) {
  std::byte *const pinned = Pinned(256), *const device = Device(256);
  std::thread([&] {
    EXPECT_EQ(driver_->Inspect(pinned)->kind, PointerInfo::Kind::kPinned);
    EXPECT_EQ(driver_->Inspect(device)->kind, PointerInfo::Kind::kDevice);
    EXPECT_EQ(driver_->Inspect(device)->device, 0);
    EXPECT_TRUE(driver_->Inspect(pinned)->Covers(reinterpret_cast<uintptr_t>(pinned), 256));
    EXPECT_TRUE(driver_->Inspect(device)->Covers(reinterpret_cast<uintptr_t>(device), 256));
    EXPECT_EQ(CurrentContext(), nullptr);
  }).join();
}

TEST_F(CudaDriverTest, RegisteredMemoryIsPinnedUntilUnregistered) {
  void* const memory = std::aligned_alloc(4096, 8192);
  ASSERT_EQ(driver_->Inspect(memory)->kind, PointerInfo::Kind::kPageable);
  ASSERT_EQ(cudaHostRegister(memory, 8192, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(driver_->Inspect(memory)->kind, PointerInfo::Kind::kPinned);
  const PointerInfo last = driver_->Inspect(static_cast<std::byte*>(memory) + 8191).value();
  EXPECT_EQ(last.end, reinterpret_cast<uintptr_t>(memory) + 8192);
  EXPECT_GE(last.begin, reinterpret_cast<uintptr_t>(memory));
  ASSERT_EQ(cudaHostUnregister(memory), cudaSuccess);
  EXPECT_EQ(driver_->Inspect(memory)->kind, PointerInfo::Kind::kPageable);
  std::free(memory);
}

TEST_F(CudaDriverTest, ManagedMemoryIsPageable) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, 4096), cudaSuccess);
  const PointerInfo info = driver_->Inspect(memory).value();
  EXPECT_EQ(info.kind, PointerInfo::Kind::kPageable);
  EXPECT_EQ(info.begin, info.end);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
}

// CUDA tells the pool's addresses for it.
TEST_F(CudaDriverTest, MemoryOfAPoolIsNotTakenForMoreThanItIs) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 4096, nullptr), cudaSuccess);
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const PointerInfo info = driver_->Inspect(memory).value();
  EXPECT_EQ(info.kind, PointerInfo::Kind::kDevice);
  EXPECT_EQ(info.device, 0);
  EXPECT_TRUE(info.Covers(at, 1));
  EXPECT_GE(info.begin, at);
  EXPECT_LE(info.end, at + 4096);
  ASSERT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
}

template <class Function>
Function Entry(const char* symbol) {
  void* found = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(symbol, &found, 10020, cudaEnableDefault, nullptr), cudaSuccess);
  return reinterpret_cast<Function>(found);
}

// CUDA tells all the addresses reserved for it, mapped or not.
TEST_F(CudaDriverTest, MemoryThatTheApplicationMappedIsNotTakenForMoreThanItIs) {
  CUmemAllocationProp own{};
  own.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  own.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t bytes = 0;
  ASSERT_EQ(Entry<PFN_cuMemGetAllocationGranularity_v10020>("cuMemGetAllocationGranularity")(
                &bytes, &own, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  CUdeviceptr at = 0;
  ASSERT_EQ(Entry<PFN_cuMemAddressReserve_v10020>("cuMemAddressReserve")(&at, 2 * bytes, 0, 0, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle memory = 0;
  ASSERT_EQ(Entry<PFN_cuMemCreate_v10020>("cuMemCreate")(&memory, bytes, &own, 0), CUDA_SUCCESS);
  ASSERT_EQ(Entry<PFN_cuMemMap_v10020>("cuMemMap")(at, bytes, 0, memory, 0), CUDA_SUCCESS);
  const PointerInfo info = driver_->Inspect(reinterpret_cast<const void*>(at)).value();
  EXPECT_EQ(info.kind, PointerInfo::Kind::kDevice);
  EXPECT_EQ(info.device, 0);
  EXPECT_TRUE(info.Covers(at, 1));
  EXPECT_LE(info.end, at + bytes);
  EXPECT_EQ(Entry<PFN_cuMemUnmap_v10020>("cuMemUnmap")(at, bytes), CUDA_SUCCESS);
  EXPECT_EQ(Entry<PFN_cuMemRelease_v10020>("cuMemRelease")(memory), CUDA_SUCCESS);
  EXPECT_EQ(Entry<PFN_cuMemAddressFree_v10020>("cuMemAddressFree")(at, 2 * bytes), CUDA_SUCCESS);
}

TEST_F(CudaDriverTest, AStaleErrorIsNotBlamedOnAnyCall) {
  std::byte *const device = Device(256), *const pinned = Pinned(256);
  const Event event = NewEvent();
  FillOp pattern{.dst = device, .pattern_size = 2, .count = 4};
  pattern.pattern[0] = std::byte{1};
  GpuLatch latch(*driver_);
  latch.Release();
  SeedStaleError();
  EXPECT_TRUE(driver_->Record(event, stream_).ok());
  EXPECT_TRUE(driver_->Wait(stream_, event).ok());
  EXPECT_TRUE(driver_->Copy(stream_, {.dst = device, .src = pinned, .width = 256}).ok());
  EXPECT_TRUE(driver_->Fill(stream_, {.dst = device, .count = 256}).ok());
  EXPECT_TRUE(driver_->Fill(stream_, pattern).ok());
  EXPECT_TRUE(latch.Hold(stream_).ok());
  EXPECT_TRUE(driver_->Inspect(device).ok());
  const absl::StatusOr<Event> made = driver_->CreateEvent(0, false);
  EXPECT_TRUE(made.ok());
  driver_->DestroyEvent(*made);
  const absl::StatusOr<Stream> stream = driver_->CreateStream(0, 0);
  EXPECT_TRUE(stream.ok());
  driver_->DestroyStream(*stream);
  const absl::StatusOr<void*> memory = driver_->AllocateDevice(0, 16);
  EXPECT_TRUE(memory.ok());
  driver_->FreeDevice(0, *memory);
  EXPECT_TRUE(CreateCudaDriver({}).ok());
  SeedStaleError();
  EXPECT_TRUE(driver_->Query(event).ok());
  EXPECT_TRUE(Finish(stream_).ok());
}

TEST_F(CudaDriverTest, EveryConversionClearsTheLastError) {
  SeedStaleError();
  EXPECT_FALSE(ToStatus(cudaErrorInvalidDevice, "choosing a device").ok());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  SeedStaleError();
  Forget(cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_FALSE(penstock::ToStatus(cudaSetDevice(1 << 20)).ok());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaDriverTest, AFailingCallClearsItsError) {
  const absl::Status status = driver_->AllocateDevice(0, size_t{1} << 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(status), HasSubstr("allocating 1125899906842624 bytes on cuda:0 ("));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_TRUE(Finish(stream_).ok());
}

}  // namespace
}  // namespace penstock::driver::cuda_driver_test

// Captures of what CUDA's own calls submit, and what breaks one. What all drivers have in common is in
// tests/conformance/driver/.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "tests/driver/cuda/gpu_test.h"

namespace penstock::driver::cuda_capture_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr auto kBroken = absl::StatusCode::kFailedPrecondition;

class CudaCaptureTest : public GpuTest {
 protected:
  cudaStream_t Native(Stream stream) const { return static_cast<cudaStream_t>(driver_->NativeStream(stream)); }
  cudaStream_t native() const { return Native(stream_); }
  // The capture of what `submit` does ends with FailedPrecondition and leaves everything as it was.
  void ExpectBroken(const std::string& words, const std::function<void()>& submit) {
    SCOPED_TRACE(words);
    std::byte* const memory = Device(16);
    ASSERT_TRUE(driver_->BeginCapture(stream_).ok());
    submit();
    const absl::Status broken = driver_->EndCapture(stream_).status();
    EXPECT_EQ(broken.code(), kBroken) << broken;
    EXPECT_THAT(base::Str(broken.message()), HasSubstr(words));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    EXPECT_EQ(cudaStreamIsCapturing(native(), &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    EXPECT_TRUE(driver_->AllocateDevice(0, 0).ok());
    EXPECT_TRUE(driver_->Fill(stream_, {.dst = memory, .pattern{std::byte{6}}, .count = 16}).ok());
    EXPECT_TRUE(Finish(stream_).ok());
    EXPECT_THAT(Download(memory, 16), Each(std::byte{6}));
    ASSERT_TRUE(driver_->BeginCapture(stream_).ok());
    EXPECT_TRUE(driver_->Fill(stream_, {.dst = memory, .count = 16}).ok());
    const absl::StatusOr<Graph> graph = driver_->EndCapture(stream_);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(driver_->CountNodes(*graph).value_or(-1), 1);
    driver_->DestroyGraph(*graph);
  }
};

void Add100(void* number) { *static_cast<int*>(number) += 100; }

TEST_F(CudaCaptureTest, WhatForeignCallsSubmitIsAChildThatIsGivenOtherArguments) {
  std::byte *const memory = Device(32), *const pinned = Pinned(32);
  int number = 0;
  const auto capture = [&](int value) {
    EXPECT_TRUE(driver_->BeginCapture(stream_).ok());
    EXPECT_EQ(cudaMemsetAsync(memory, value, 16, native()), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(memory + 16, memory, 16, cudaMemcpyDeviceToDevice, native()), cudaSuccess);
    EXPECT_EQ(cudaLaunchHostFunc(native(), &Add100, &number), cudaSuccess);
    return *driver_->EndCapture(stream_);
  };
  const Graph first = capture(1), second = capture(2), graph = *driver_->CreateGraph(0);
  EXPECT_EQ(driver_->CountNodes(first).value_or(-1), 3);
  const CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = pinned, .src = memory, .width = 32};
  ASSERT_EQ(driver_->AddChild(graph, {}, first).value_or(-1), 0);
  ASSERT_EQ(driver_->AddNode(graph, std::vector<int32_t>{0}, &down, {}).value_or(-1), 1);
  driver_->DestroyGraph(first);
  const GraphExec exec = *driver_->Instantiate(graph);
  driver_->DestroyGraph(graph);
  const auto expect = [&](int value, int called) {
    ASSERT_TRUE(driver_->LaunchGraph(exec, stream_).ok());
    ASSERT_TRUE(Finish(stream_).ok());
    EXPECT_THAT(std::vector<std::byte>(pinned, pinned + 32), Each(std::byte(value)));
    EXPECT_EQ(number, 100 * called);
  };
  expect(1, 1);
  ASSERT_EQ(driver_->SetChild(exec, 0, second), absl::OkStatus());
  driver_->DestroyGraph(second);
  expect(2, 2);
  driver_->DestroyExec(exec);
}

TEST_F(CudaCaptureTest, WhatForksToAnotherStreamAndIsJoinedIsCaptured) {
  std::byte* const memory = Device(32);
  const Stream other = NewStream();
  cudaEvent_t fork = nullptr, join = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), cudaSuccess);
  ASSERT_TRUE(driver_->BeginCapture(stream_).ok());
  EXPECT_EQ(cudaMemsetAsync(memory, 1, 32, native()), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(fork, native()), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(Native(other), fork), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 2, 16, Native(other)), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory + 16, 3, 16, native()), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(join, Native(other)), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(native(), join), cudaSuccess);
  const absl::StatusOr<Graph> graph = driver_->EndCapture(stream_);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(driver_->CountNodes(*graph).value_or(-1), 3);
  const GraphExec exec = *driver_->Instantiate(*graph);
  ASSERT_TRUE(driver_->LaunchGraph(exec, stream_).ok());
  ASSERT_TRUE(Finish(stream_).ok());
  EXPECT_THAT(Download(memory, 16), Each(std::byte{2}));
  EXPECT_THAT(Download(memory + 16, 16), Each(std::byte{3}));
  driver_->DestroyExec(exec);
  driver_->DestroyGraph(*graph);
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
}

TEST_F(CudaCaptureTest, WhatBreaksACaptureIsToldInCudasWords) {
  ExpectBroken("cudaErrorStreamCapture", [&] { EXPECT_NE(cudaStreamSynchronize(native()), cudaSuccess); });
  ExpectBroken("from cuStreamQuery", [&] { EXPECT_NE(cudaStreamQuery(native()), cudaSuccess); });
  ExpectBroken("cudaErrorStreamCapture", [] {
    void* memory = nullptr;
    EXPECT_NE(cudaMalloc(&memory, 16), cudaSuccess);
  });
  ExpectBroken("cudaErrorStreamCapture", [] { std::thread([] { (void)cudaDeviceSynchronize(); }).join(); });
}

// The capture stays valid, and only the operation is missing.
TEST_F(CudaCaptureTest, ACallThatIsRefusedInItIsToldByItsEnd) {
  std::byte *const from = Device(16), *const to = Device(16);
  const auto batch = [&] {
    const void* sources[] = {from};
    void* targets[] = {to};
    const size_t sizes[] = {16};
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    EXPECT_NE(cudaMemcpyBatchAsync(targets, sources, sizes, 1, &attributes, &first, 1, native()), cudaSuccess);
  };
  ExpectBroken("cuMemcpyBatchAsync", batch);
  ExpectBroken("cuMemcpyBatchAsync", [&] {
    batch();
    EXPECT_NE(cudaGetLastError(), cudaSuccess) << "the log still tells";
  });
  ExpectBroken("InvalidMemcpyDirection", [&] {
    EXPECT_NE(cudaMemcpyAsync(to, from, 16, static_cast<cudaMemcpyKind>(17), native()), cudaSuccess);
  });
  ExpectBroken("does not refer to an active allocation", [&] { EXPECT_NE(cudaFreeAsync(to, native()), cudaSuccess); });
  ExpectBroken("cuStreamBeginCapture",
               [&] { EXPECT_NE(cudaStreamBeginCapture(native(), cudaStreamCaptureModeThreadLocal), cudaSuccess); });
  ExpectBroken("and 8 more", [&] {
    for (uintptr_t i = 1; i <= 10; ++i) (void)cudaFreeAsync(reinterpret_cast<void*>(i << 32), native());
  });
}

TEST_F(CudaCaptureTest, ErrorsBeforeItAndOfOtherThreadsAreNotToldAsItsOwn) {
  std::byte* const memory = Device(16);
  void* const of_nobody = reinterpret_cast<void*>(uintptr_t{1} << 32);
  EXPECT_NE(cudaFreeAsync(of_nobody, native()), cudaSuccess) << "a stale last error";
  ASSERT_TRUE(driver_->BeginCapture(stream_).ok());
  EXPECT_TRUE(driver_->Fill(stream_, {.dst = memory, .count = 16}).ok());
  const Stream other = NewStream();
  std::thread([&] { EXPECT_NE(cudaFreeAsync(of_nobody, Native(other)), cudaSuccess); }).join();
  const absl::StatusOr<Graph> graph = driver_->EndCapture(stream_);
  ASSERT_TRUE(graph.ok()) << graph.status();
  driver_->DestroyGraph(*graph);
}

TEST_F(CudaCaptureTest, AForkThatIsNotJoinedBreaksIt) {
  cudaEvent_t fork = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), cudaSuccess);
  std::byte* const memory = Device(16);
  const Stream other = NewStream();
  ExpectBroken("cudaErrorStreamCaptureUnjoined", [&] {
    EXPECT_EQ(cudaEventRecord(fork, native()), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(Native(other), fork), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(memory, 2, 16, Native(other)), cudaSuccess);
  });
  EXPECT_TRUE(driver_->Fill(other, {.dst = memory, .pattern{std::byte{7}}, .count = 16}).ok());
  EXPECT_TRUE(Finish(other).ok());
  EXPECT_THAT(Download(memory, 16), Each(std::byte{7}));
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
}

TEST_F(CudaCaptureTest, WhoEndsTheCaptureHimselfIsToldOf) {
  ExpectBroken("has ended it", [&] {
    cudaGraph_t taken = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(native(), &taken), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(taken), cudaSuccess);
  });
}

TEST_F(CudaCaptureTest, OtherThreadsDoNotBreakIt) {
  std::byte *const memory = Device(16), *const pinned = Pinned(16);
  const Stream other = NewStream();
  ASSERT_TRUE(driver_->BeginCapture(stream_).ok());
  EXPECT_TRUE(driver_->Fill(stream_, {.dst = memory, .count = 16}).ok());
  std::thread([&] {
    const int token = driver_->MakeCurrent(0);
    const absl::StatusOr<void*> block = driver_->AllocateDevice(0, 1 << 20);
    EXPECT_TRUE(block.ok());
    EXPECT_TRUE(driver_->Copy(other, {.dst = *block, .src = pinned, .width = 16}).ok());
    EXPECT_TRUE(Finish(other).ok());
    driver_->FreeDevice(0, *block);
    driver_->RestoreCurrent(token);
  }).join();
  const absl::StatusOr<Graph> graph = driver_->EndCapture(stream_);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(driver_->CountNodes(*graph).value_or(-1), 1);
  driver_->DestroyGraph(*graph);
}

TEST_F(CudaCaptureTest, ACaptureThatAllocatesIsNoChild) {
  ASSERT_TRUE(driver_->BeginCapture(stream_).ok());
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocAsync(&memory, 4096, native()), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 1, 4096, native()), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(memory, native()), cudaSuccess);
  const Graph captured = *driver_->EndCapture(stream_), graph = *driver_->CreateGraph(0);
  const absl::Status refused = driver_->AddChild(graph, {}, captured).status();
  EXPECT_EQ(refused.code(), kBroken) << refused;
  EXPECT_THAT(base::Str(refused.message()), HasSubstr("cudaError"));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 0);
  driver_->DestroyGraph(captured);
  driver_->DestroyGraph(graph);
}

TEST_F(CudaCaptureTest, AGraphThatDoesNotFitIsRefusedInCudasWords) {
  std::byte* const memory = Device(16);
  const auto capture = [&](int fills) {
    EXPECT_TRUE(driver_->BeginCapture(stream_).ok());
    for (int i = 0; i < fills; ++i) EXPECT_TRUE(driver_->Fill(stream_, {.dst = memory, .count = 16}).ok());
    return *driver_->EndCapture(stream_);
  };
  const Graph one = capture(1), two = capture(2), graph = *driver_->CreateGraph(0);
  ASSERT_TRUE(driver_->AddChild(graph, {}, one).ok());
  const GraphExec exec = *driver_->Instantiate(graph);
  const absl::Status refused = driver_->SetChild(exec, 0, two);
  EXPECT_EQ(refused.code(), kBroken) << refused;
  EXPECT_THAT(base::Str(refused.message()), HasSubstr("cudaError"));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  driver_->DestroyExec(exec);
  for (const Graph each : {one, two, graph}) driver_->DestroyGraph(each);
}

// Or else its thread could not allocate any more.
TEST_F(CudaCaptureTest, AStreamThatGoesTakesItsCaptureAlong) {
  const Stream stream = *driver_->CreateStream(0, 0);
  std::byte* const memory = Device(16);
  ASSERT_TRUE(driver_->BeginCapture(stream).ok());
  EXPECT_TRUE(driver_->Fill(stream, {.dst = memory, .count = 16}).ok());
  driver_->DestroyStream(stream);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_NE(Device(16), nullptr);
}

}  // namespace
}  // namespace penstock::driver::cuda_capture_test

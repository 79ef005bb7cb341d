// What fuzzed graphs have found, one mistake a test: each failed before it was mended.
#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"

namespace penstock {
namespace {

#define ASSERT_OK(expr) ASSERT_EQ((expr), absl::OkStatus())

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

// One device, and one InOut of four ints that a host node touches.
class FoundByFuzzing : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Runtime> made = Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
    graph_.Host("touch", [](std::span<int32_t> x) { x[0] += 1; }, ReadWrite(x_));
  }

  std::optional<Runtime> runtime_;
  Graph graph_{"g"};
  BufferHandle<int32_t> x_ = graph_.InOut<int32_t>("x", 4);
};

TEST_F(FoundByFuzzing, BindingAHostBufferKeepsItsBlock) {
  auto exec = runtime_->Compile(graph_);
  ASSERT_OK(exec.status());
  auto memory = runtime_->MakeHostBuffer<int32_t>(4);
  ASSERT_OK(memory.status());
  Bindings io = exec->bindings();
  const auto before = memory->block().use_count();
  io.Set(x_, *memory);  // an lvalue that is not const: a range, too
  EXPECT_EQ(memory->block().use_count(), before + 1);
}

TEST_F(FoundByFuzzing, ElementsAtANullAddressAreRefused) {
  auto exec = runtime_->Compile(graph_);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const auto run = exec->Launch(io.Set(x_, std::span<int32_t>(static_cast<int32_t*>(nullptr), 4)));
  EXPECT_NE(Message(run.status()).find("bound to 4 elements at a null address; bind memory that exists"),
            std::string::npos)
      << run.status();
}

void KernelOfView(View<int32_t>) {}

TEST_F(FoundByFuzzing, ATwinOfAKernelThatTakesAViewTakesAView) {
  int64_t width = 0;
  graph_.Kernel("k", &KernelOfView, Threads(4), ReadWrite(x_)).HostTwin([&width](View<int32_t> view) {
    width = view.width;
    view(3) = 7;
  });
  auto exec = runtime_->Compile(graph_);
  ASSERT_OK(exec.status());
  std::vector<int32_t> x(4);
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(x_, x));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(width, 4);
  EXPECT_EQ(x, (std::vector<int32_t>{1, 0, 0, 7}));
}

TEST_F(FoundByFuzzing, AHandleOfAnotherTypeIsRefused) {
  const auto wrong = BufferHandle<double>(x_.graph(), x_.index());
  const auto p = graph_.Param<int32_t>("p");
  graph_.Host("buffer", [](std::span<const double>) {}, Read(wrong));
  graph_.Host("param", [](int64_t) {}, ParamHandle<int64_t>(p.graph(), p.index()));
  const std::string message = Message(runtime_->Compile(graph_).status());
  EXPECT_NE(message.find("argument 0 is 'x' (found_by_fuzzing_test.cc:"), std::string::npos) << message;
  EXPECT_NE(message.find("through a handle of another type (8 and 4 bytes); use the handle that declaring it returned"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("argument 0 is 'p' (found_by_fuzzing_test.cc:"), std::string::npos) << message;
}

TEST_F(FoundByFuzzing, ANameOfSeveralLinesStaysOnOneInAMessage) {
  graph_.Host("two\nlines", [] {}).Concurrency(0);
  graph_.Host("bell\a", [] {}).Concurrency(0);
  const std::string message = Message(runtime_->Compile(graph_).status());
  EXPECT_NE(message.find("\n  graph 'g' node 'two\\x0alines' ("), std::string::npos) << message;
  EXPECT_NE(message.find("\n  graph 'g' node 'bell\\x07' ("), std::string::npos) << message;
}

}  // namespace
}  // namespace penstock

// What fuzzed graphs have found, one mistake a test: each failed before it was mended.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "tests/support/status.h"

namespace penstock::found_by_fuzzing_test {
namespace {

struct Nothing {
  PENSTOCK_HOST_DEVICE void operator()(int64_t) const {}
};

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
  EXPECT_NE(Text(run.status()).find("bound to 4 elements at a null address; bind memory that exists"),
            std::string::npos)
      << run.status();
}

void KernelOfView(View<int32_t>) {}

TEST_F(FoundByFuzzing, ATwinOfAKernelThatTakesAViewTakesAView) {
  int64_t width = 0;
  graph_.Kernel("k", &KernelOfView, Threads(4), ReadWrite(x_)).HostFallback([&width](View<int32_t> view) {
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
  const std::string message = Text(runtime_->Compile(graph_).status());
  EXPECT_NE(message.find("argument 0 is 'x' (found_by_fuzzing_test.cc:"), std::string::npos) << message;
  EXPECT_NE(message.find("through a handle of another type (double; it was declared as int32_t); use the handle that "
                         "its declaration returned"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("argument 0 is 'p' (found_by_fuzzing_test.cc:"), std::string::npos) << message;
}

TEST_F(FoundByFuzzing, AToleranceBelowZeroIsRefused) {
  const auto refusal = [&](double tolerance) {
    return Text(runtime_->Compile(graph_, {.host_tolerance = tolerance}).status());
  };
  EXPECT_EQ(refusal(-2), "graph 'g': CompileOptions::host_tolerance is -2.000000; a tolerance is 0 or more");
  EXPECT_EQ(refusal(std::nan("")), "graph 'g': CompileOptions::host_tolerance is nan; a tolerance is 0 or more");
}

TEST_F(FoundByFuzzing, AParameterHandleOfNothingIsNoDimension) {
  const ParamHandle<int32_t> unset;
  graph_.Kernel(
            Name("k", "dir/a.cc", 9), +[](int32_t*) {}, Threads(unset), ReadWrite(x_))
      .HostFallback([](int32_t*) {});
  graph_.ParallelFor(Name("f", "dir/a.cc", 10), unset, Nothing{});
  EXPECT_EQ(Text(runtime_->Compile(graph_).status()),
            "graph 'g': 2 mistakes:\n"
            "  graph 'g' node 'k' (a.cc:9): the number of threads is no parameter; its handle was never set; declare "
            "the parameter in this graph\n"
            "  graph 'g' node 'f' (a.cc:10): dimension 0 is no parameter; its handle was never set; declare the "
            "parameter in this graph");
}

TEST_F(FoundByFuzzing, ANullNameIsAnEmptyOne) {
  const char* null = nullptr;
  graph_.Host(Name(null, "dir/a.cc", 9), [] {});
  graph_.Host(Name("h", null, 10), [] {}).Concurrency(0);
  EXPECT_EQ(Text(runtime_->Compile(graph_).status()),
            "graph 'g': 2 mistakes:\n"
            "  graph 'g' node '' (a.cc:9): has no name; messages and traces call everything by its name; give it one\n"
            "  graph 'g' node 'h' (:10): Concurrency(0): at least one run at a time must be able to use the callable; "
            "give 1 or more");
  EXPECT_EQ(Text(runtime_->Compile(Graph(Name(null, "dir/a.cc", 3))).status()),
            "graph '': the graph declared at a.cc:3 has no name; messages and traces call everything by its name; give "
            "it one");
}

TEST_F(FoundByFuzzing, AGraphThatWasMovedFromIsRefused) {
  Graph from(Name("from", "dir/a.cc", 3));
  auto x = from.InOut<int32_t>("x", 4);
  NodeRef node = from.Host("touch", [](std::span<int32_t>) {}, ReadWrite(x));
  Graph to = std::move(from);
  node.Priority(1);
  to.Host("touch again", [](std::span<int32_t>) {}, ReadWrite(x)).After(node);
  EXPECT_EQ(to.model().nodes.size(), 2U);
  EXPECT_EQ(runtime_->Compile(to).status(), absl::OkStatus());

  const std::string mistake =
      "graph 'from': was declared at a.cc:3 and moved from; what is declared on it since then belongs to no graph; use "
      "the graph it was moved to";
  EXPECT_EQ(runtime_->Compile(from).status(), absl::FailedPreconditionError(mistake));  // NOLINT: moved from on purpose
  const auto lost = from.Input<int32_t>("lost", 4);
  from.Host("late", [](std::span<const int32_t>) {}, Read(lost));
  EXPECT_EQ(runtime_->Compile(from).status(), absl::FailedPreconditionError(mistake));
  to.Host("astray", [](std::span<const int32_t>) {}, Read(lost));
  EXPECT_NE(Text(runtime_->Compile(to).status()).find("access 0 is to a buffer of another graph"), std::string::npos);
  from = Graph("fresh");
  EXPECT_EQ(runtime_->Compile(from).status(), absl::OkStatus());
}

TEST_F(FoundByFuzzing, ARuntimeThatWasMovedFromRefusesCalls) {
  Runtime from = *std::move(runtime_);
  runtime_.emplace(std::move(from));
  const absl::Status status = absl::FailedPreconditionError("this Runtime was moved from; use the one it was moved to");
  EXPECT_TRUE(from.devices().empty());  // NOLINT: moved from on purpose
  EXPECT_EQ(from.Compile(graph_).status(), status);
  EXPECT_EQ(from.MakeHostBuffer<int32_t>(4).status(), status);
  EXPECT_EQ(from.MakeState<int32_t>("s", 4).status(), status);
  EXPECT_EQ(from.Shutdown(), status);
}

TEST_F(FoundByFuzzing, ANameOfSeveralLinesStaysOnOneInAMessage) {
  graph_.Host("two\nlines", [] {}).Concurrency(0);
  graph_.Host("event count\a", [] {}).Concurrency(0);
  const std::string message = Text(runtime_->Compile(graph_).status());
  EXPECT_NE(message.find("\n  graph 'g' node 'two\\x0alines' ("), std::string::npos) << message;
  EXPECT_NE(message.find("\n  graph 'g' node 'event count\\x07' ("), std::string::npos) << message;
}

}  // namespace
}  // namespace penstock::found_by_fuzzing_test

// A Launch node whose callable makes a call that is refused inside the capture and ignores that. The capture stays
// valid, and the graph would lack the call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/mode_scope.h"

namespace penstock::runtime::refused_capture_test {
namespace {

using testing::HasSubstr;

// While a stream captures, what a node submits is a call that is refused: a second BeginCapture.
class IgnoresRefusals final : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;

  absl::Status BeginCapture(driver::Stream stream) override {
    capturing_ = true;
    return ForwardingDriver::BeginCapture(stream);
  }
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    if (!capturing_) return ForwardingDriver::Launch(stream, op);
    EXPECT_FALSE(ForwardingDriver::BeginCapture(stream).ok());
    return absl::OkStatus();
  }
  absl::StatusOr<driver::Graph> EndCapture(driver::Stream stream) override {
    capturing_ = false;
    return ForwardingDriver::EndCapture(stream);
  }

 private:
  std::atomic<bool> capturing_{false};
};

class RefusedCapture : public testing::Test {
 protected:
  RefusedCapture() : runtime_(MakeRuntime()) {
    x_ = graph_.InOut<int>("x", 4, kPinned);
    graph_.Launch("theirs", [](LaunchContext&, int*) {}, ReadWrite(x_)).HostFallback([](int* x) { x[3] += 7; });
  }

  static Runtime MakeRuntime() {
    const ScopedDriverHook hook({.wrap = [](auto host) { return std::make_unique<IgnoresRefusals>(std::move(host)); }});
    return *Runtime::Create({.devices = "host"});
  }

  Graph graph_{"g"};
  Runtime runtime_;
  BufferHandle<int> x_;
};

TEST_F(RefusedCapture, IsCompilesStatusInGraphModeWithTheNodesLine) {
  const ModeScope mode("graph");
  const std::string text = runtime_.Compile(graph_).status().ToString();
  EXPECT_THAT(text, HasSubstr("graph 'g' node 'theirs' (refused_capture_test.cc:"));
  EXPECT_THAT(text, HasSubstr("a call was refused while the stream captured, and the graph lacks it: BeginCapture"));
}

TEST_F(RefusedCapture, HasTheNodeRunOnAStreamUnderAutoAndTheLedgerSaysWhy) {
  const ModeScope mode("auto");
  Executable exec = *runtime_.Compile(graph_);
  EXPECT_THAT(exec.submission_report().Text(), HasSubstr("a call was refused while the stream captured"));
  HostBuffer<int> memory = *runtime_.MakeHostBuffer<int>(4);
  for (int run = 0; run < 20; ++run) {
    memory[3] = run;
    ASSERT_EQ(exec.Launch(exec.bindings().Set(x_, memory))->Wait(), absl::OkStatus());
    ASSERT_EQ(memory[3], run + 7);
  }
}

}  // namespace
}  // namespace penstock::runtime::refused_capture_test

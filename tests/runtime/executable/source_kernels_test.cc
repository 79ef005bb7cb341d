// Kernels made from sources, as far as no GPU is needed: a host device says that it has an architecture, so Compile
// compiles for it; what it would load is noted, and the host fallback runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/runtime.h"
#include "penstock/source.h"
#include "src/jit/compiler.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/environment.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/nvrtc.h"
#include "tests/support/status.h"
#include "tests/support/temporary_folder.h"

namespace penstock::runtime::source_kernels_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// What the devices have loaded.
struct Loaded {
  std::vector<std::string> symbols;
  std::vector<uint32_t> parameters;  // that every kernel says it takes
  int images = 0;  // loaded now
};

class ImageDriver : public driver::ForwardingDriver {
 public:
  ImageDriver(std::unique_ptr<driver::Driver> behind, Loaded& loaded)
      : ForwardingDriver(std::move(behind)), loaded_(loaded) {
    for (int d = 0; d < device_count(); ++d) {
      infos_.push_back(ForwardingDriver::device(d));
      infos_.back().architecture = "sm_90";
    }
  }
  const driver::DeviceInfo& device(int device) const override { return infos_[static_cast<size_t>(device)]; }
  absl::StatusOr<driver::ImageKernel> LoadImage(int, std::string_view image, const char* symbol, bool) override {
    EXPECT_THAT(std::string(image), StartsWith("\x7f"
                                               "ELF"));
    loaded_.symbols.emplace_back(symbol);
    ++loaded_.images;
    driver::ImageKernel kernel;
    kernel.parameters = loaded_.parameters;
    kernel.image = std::shared_ptr<const void>(
        &loaded_, [](const void* of) { --static_cast<Loaded*>(const_cast<void*>(of))->images; });
    return kernel;
  }

 private:
  Loaded& loaded_;
  std::vector<driver::DeviceInfo> infos_;
};

const Source kAxpy(
    "template <class T>\n__global__ void axpy(T a, const T* x, T* y, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] += a * x[i];\n}\n",
    "axpy<float>");

class SourceKernels : public testing::Test {
 protected:
  void SetUp() override {
    PENSTOCK_SKIP_WITHOUT_NVRTC();
    jit::ForgetCompiled();
  }
  // y += a * x for four elements.
  void Declare(Graph& graph, const Source& source = kAxpy) {
    a_ = graph.Param<float>("a");
    x_ = graph.Input<float>("x", 4);
    y_ = graph.InOut<float>("y", 4);
    graph.Kernel(Name("axpy", "a.cc", 12), source, Threads(4), a_, Read(x_), ReadWrite(y_), 4)
        .HostFallback([](float a, const float* x, float* y, int n) {
          for (int i = 0; i < n; ++i) y[i] += a * x[i];
        });
  }
  absl::StatusOr<Executable> Compile(const Graph& graph, CompileOptions options = {}) {
    return runtime_.Compile(graph, options);
  }

  const TemporaryFolder root_;
  const EnvironmentScope cache_{"PENSTOCK_JIT_CACHE", root_.path() + "/jit"};
  Loaded loaded_{.symbols = {}, .parameters = {4, 8, 8, 4}};
  std::chrono::steady_clock::time_point now_{};
  std::chrono::seconds step_{0};  // that each look at the clock takes
  const ScopedDriverHook hook_{
      {.host_options = nullptr,
       .wrap = [this](auto driver) { return std::make_unique<ImageDriver>(std::move(driver), loaded_); },
       .progress_clock = [this] { return now_ += step_; }}};
  Runtime runtime_ = *Runtime::Create({.devices = "host:2"});
  ParamHandle<float> a_;
  BufferHandle<float> x_, y_;
};

TEST_F(SourceKernels, AreCompiledAndLoadedAndTakeParametersAnew) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    Graph graph("g");
    Declare(graph);
    absl::StatusOr<Executable> exec = Compile(graph, {.mode = mode});
    ASSERT_OK(exec.status());
    std::vector<float> x{1, 2, 3, 4}, y(4);
    for (const float a : {2.0f, 3.0f}) {
      ASSERT_OK(exec->Launch(exec->bindings().Set(a_, a).Set(x_, x).Set(y_, y))->Wait());
    }
    EXPECT_THAT(y, ElementsAre(5, 10, 15, 20));
  }
  EXPECT_THAT(loaded_.symbols, ElementsAre("_Z4axpyIfEvT_PKS0_PS0_i", "_Z4axpyIfEvT_PKS0_PS0_i"));
}

TEST_F(SourceKernels, AreCompiledOnceIfTheyAreEqualAndNotKept) {
  Graph graph("g");
  const auto declare = [&](const std::string& name) {
    const auto y = graph.InOut<float>(name, 4);
    graph
        .Kernel(name, Source("__global__ void k(float* x) { *x = 1; }", "k", {.options = {"-I" + root_.path()}}),
                Threads(1), ReadWrite(y))
        .HostFallback([](float* x) { *x = 1; });
  };
  declare("a");
  declare("b");
  loaded_.parameters = {8};
  const int64_t before = jit::CountsOfCompiled().compiled;
  EXPECT_OK(Compile(graph).status());
  EXPECT_EQ(jit::CountsOfCompiled().compiled - before, 1);
}

TEST_F(SourceKernels, AreRatherCopiedThanMoved) {
  Source first("text", "kernel");
  const Source second = std::move(first);
  EXPECT_EQ(first, second);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(first.parts().text, "text");
}

TEST_F(SourceKernels, StayLoadedAsLongAsTheirExecutable) {
  {
    Graph graph("g");
    Declare(graph);
    const Executable exec = *Compile(graph);
    EXPECT_EQ(loaded_.images, 1);
  }
  EXPECT_EQ(loaded_.images, 0);
}

TEST_F(SourceKernels, AreLoadedOnceForEachDevice) {
  Graph graph("g");
  const auto x = graph.InOut<float>("x", 4);
  for (int i = 0; i < 6; ++i) {
    const Source same(kAxpy.parts().text, kAxpy.parts().kernel);
    graph.Kernel(Name("k", i), same, Threads(4), 1.0f, Read(x), ReadWrite(x), 4)
        .HostFallback([](float, const float*, float*, int) {})
        .On(i % 2);
  }
  const int64_t before = jit::CountsOfCompiled().compiled;
  ASSERT_OK(Compile(graph).status());
  EXPECT_EQ(jit::CountsOfCompiled().compiled - before, 1);
  EXPECT_EQ(loaded_.symbols.size(), 2u);
}

TEST_F(SourceKernels, AreNamedWithTheirNodeAndTheCompilersWords) {
  Graph graph("g");
  Declare(graph, Source("\n__global__ void axpy(float a) { nothing; }", "axpy", {.file = "axpy.cu"}));
  const absl::Status refused = Compile(graph).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), StartsWith("graph 'g' node 'axpy' (a.cc:12) on host:0: kernel 'axpy' of axpy.cu does not "
                                        "compile for sm_90; NVRTC 13."));
  EXPECT_THAT(Text(refused), HasSubstr("\naxpy.cu(2): error: identifier \"nothing\" is undefined"));
  EXPECT_THAT(loaded_.symbols, IsEmpty());
}

TEST_F(SourceKernels, AreRefusedIfTheyTakeOtherArguments) {
  const auto refusal = [&](std::vector<uint32_t> parameters) {
    loaded_.parameters = std::move(parameters);
    Graph graph("g");
    Declare(graph);
    return Text(Compile(graph).status());
  };
  EXPECT_EQ(refusal({4, 8, 8, 4}), "");
  EXPECT_EQ(refusal({4, 8, 8, 8}),
            "graph 'g' node 'axpy' (a.cc:12) on host:0: kernel 'axpy<float>' takes 28 bytes in 4 parameters (4, 8, 8, "
            "8), and the node gives 24 bytes in 4 arguments (4, 8, 8, 4); an access gives a pointer, a parameter or "
            "value its own type; give it the types that the kernel takes, in their order");
  EXPECT_THAT(refusal({24}), HasSubstr("takes 24 bytes in 1 parameter (24), and the node gives 24 bytes in 4"));
  EXPECT_THAT(refusal({}), HasSubstr("takes 0 bytes in 0 parameters, and the node"));
  EXPECT_EQ(loaded_.images, 0) << "nothing of a refused graph stays loaded";
}

TEST_F(SourceKernels, NeedAFallbackWhereThereIsNoArchitecture) {
  Runtime plain = *Runtime::Create({.devices = "host:1"});
  Graph graph("g");
  const auto y = graph.InOut<float>("y", 4);
  auto node = graph.Kernel(Name("axpy", "a.cc", 12), kAxpy, Threads(4), 1.0f, Read(y), ReadWrite(y), 4);
  EXPECT_EQ(Text(plain.Compile(graph).status()),
            "graph 'g' node 'axpy' (a.cc:12) on host:0: a Kernel runs on CUDA devices only; this is a host device and "
            "the node has no host fallback for it; give it one with .HostFallback(f), or pin it to a CUDA device");
  node.HostFallback([](float a, const float* x, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] += a * x[i];
  });
  EXPECT_OK(plain.Compile(graph).status());
}

TEST_F(SourceKernels, EndTheirCompilationIfTheUserSaysSo) {
  Graph graph("g");
  Declare(graph);
  step_ = std::chrono::seconds(1);
  std::vector<std::string> told;
  CompileOptions options;
  options.progress = [&](const Progress& at) {
    told.emplace_back(at.what);
    return at.what.find("compiling sources") == std::string_view::npos;
  };
  EXPECT_EQ(Compile(graph, options).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(told.back(), "graph 'g': compiling sources");
  EXPECT_THAT(loaded_.symbols, IsEmpty());
}

TEST_F(SourceKernels, AreTheSameStepIfTheirPartsAre) {
  GraphCache steps(runtime_);
  std::vector<float> x{1, 2, 3, 4}, y(4);
  const auto step = [&](const std::string& text, const std::string& file) {
    const Source source(text, "axpy<float>", {.file = file});
    const auto run = steps.Launch([&](Graph& graph, Bindings& io) {
      const auto in = graph.Input<float>("x", 4);
      const auto out = graph.InOut<float>("y", 4);
      graph.Kernel("axpy", source, Threads(4), 1.0f, Read(in), ReadWrite(out), 4)
          .HostFallback([](float a, const float* from, float* to, int n) {
            for (int i = 0; i < n; ++i) to[i] += a * from[i];
          });
      io.Set(in, x).Set(out, y);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  };
  const std::string text = kAxpy.parts().text;
  step(text, "a.cu");
  step(text, "a.cu");
  EXPECT_EQ(loaded_.symbols.size(), 1u);
  step(text + " ", "a.cu");
  EXPECT_EQ(loaded_.symbols.size(), 2u);
  step(text + " ", "b.cu");
  EXPECT_EQ(loaded_.symbols.size(), 3u);
  step(text, "a.cu");
  EXPECT_EQ(loaded_.symbols.size(), 3u);
}

}  // namespace
}  // namespace penstock::runtime::source_kernels_test

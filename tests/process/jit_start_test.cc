// Kernels made from sources over several processes: the second takes them from the disk and does not even load NVRTC.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "src/jit/compiler.h"
#include "tests/process/child.h"
#include "tests/support/nvrtc.h"
#include "tests/support/temporary_folder.h"

namespace penstock::test_support::jit_start_test {
namespace {

// Compiles a source whose value is the argument, and prints how often NVRTC ran and whether it is loaded.
int CompileOne(const std::string& value) {
  const Source::Parts source{"__global__ void set(int* x) { *x = " + value + "; }", "set", {}};
  const auto made = jit::CompileSources({{&source, "sm_90"}}, {});
  if (!made.ok() || !made->at(0).ok()) return 1;
  void* const loaded = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_NOLOAD);
  std::printf("compiled %d, %s", static_cast<int>(jit::CountsOfCompiled().compiled),
              loaded != nullptr ? "loaded" : "not loaded");
  return 0;
}
const Scenario kCompilesOne("compiles a source", &CompileOne);

TEST(JitStart, TakesKernelsFromTheDiskWithoutLoadingNvrtc) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  const TemporaryFolder root;
  const ChildOptions options{.environment = {"PENSTOCK_JIT_CACHE=" + root.path() + "/jit"}};
  const auto output = [&](const char* value, const ChildOptions& with) {
    const ChildResult result = RunInChild(kCompilesOne, value, with);
    EXPECT_EQ(result.ended, "exit 0") << result;
    return result.output;
  };
  EXPECT_EQ(output("1", options), "compiled 1, loaded");
  EXPECT_EQ(output("1", options), "compiled 0, not loaded");
  EXPECT_EQ(output("2", options), "compiled 1, loaded");
  EXPECT_EQ(output("1", options), "compiled 0, not loaded");
  ChildOptions elsewhere = options;
  elsewhere.environment.emplace_back("CUDA_HOME=/somewhere else");
  EXPECT_EQ(output("1", elsewhere), "compiled 0, loaded") << "another NVRTC might be there";
  EXPECT_EQ(output("1", elsewhere), "compiled 0, not loaded");
}

}  // namespace
}  // namespace penstock::test_support::jit_start_test

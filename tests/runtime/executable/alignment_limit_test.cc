// Types that ask for more than memory and argument blocks give are refused by name, when the graph is compiled.
#include <gtest/gtest.h>

#include <string>

#include "penstock/runtime.h"

namespace penstock::alignment_limit_test {
namespace {

struct alignas(512) Page {
  int32_t v[128];
};
struct Functor {
  Page page;
  void operator()(int64_t, int32_t*) const {}
};

TEST(AlignmentLimit, CompileNamesWhatAsksForMore) {
  absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = "host:1"});
  ASSERT_TRUE(runtime.ok());
  Graph g("g");
  auto x = g.InOut<int32_t>(Name("x", "a.cc", 1), 4);
  g.Param<Page>(Name("p", "a.cc", 2));
  g.Input<Page>(Name("in", "a.cc", 3), 4);
  g.ParallelFor(Name("for", "a.cc", 4), 4, Functor{}, ReadWrite(x));
  g.Host(Name("host", "a.cc", 5), [](const Page&, std::span<int32_t>) {}, Page{}, ReadWrite(x));
  g.Host(Name("fine", "a.cc", 6), [](std::span<int32_t>) {}, ReadWrite(x));
  const std::string text(runtime->Compile(g).status().message());
  const std::string rest = " aligned to 512 bytes; memory and arguments are aligned to 256 at most; give the type a ";
  for (const char* const begin :
       {"param 'p' (a.cc:2): has a type", "buffer 'in' (a.cc:3): has elements",
        "node 'for' (a.cc:4): its functor has a type", "node 'host' (a.cc:5): argument 0 has a type"}) {
    EXPECT_NE(text.find(begin + rest), std::string::npos) << begin << "\n" << text;
  }
  EXPECT_EQ(text.find("'fine'"), std::string::npos) << text;
}

TEST(AlignmentLimit, MakeStateNamesWhatAsksForMore) {
  absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = "host:1"});
  ASSERT_TRUE(runtime.ok());
  const absl::Status refused = runtime->MakeState<Page>("s", 4).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("aligned to 512 bytes"), absl::string_view::npos) << refused;
}

}  // namespace
}  // namespace penstock::alignment_limit_test

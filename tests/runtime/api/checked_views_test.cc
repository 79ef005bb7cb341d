// Views that check their indices. CMake leaves this file out of the batches, since others have the unchecked View.
#define PENSTOCK_CHECKED_VIEWS 1

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <random>
#include <set>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "penstock/penstock.h"
#include "tests/support/mode_scope.h"
#include "tests/support/sanitized.h"
#include "tests/support/status.h"

namespace penstock::checked_views_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Text(const absl::Status& status) { return {status.message().data(), status.message().size()}; }

template <class... Index>
bool Has(const View<char>& view, Index... index) {
  try {
    return &view(index...) >= view.data;
  } catch (const std::exception&) {
    return false;
  }
}

// Adds up what lies `by` further in its row.
struct Shift {
  int64_t by;
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> from, View<int32_t> to) const {
    to(i.y, i.x) = from(i.y, i.x + by);
  }
};
struct Touch {
  int64_t view, at;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, Views<const int32_t> from, int32_t* to) const {
    to[i] = from[view](at);
  }
};
void NoKernel(View<const int32_t>, View<int32_t>) {}

class CheckedViews : public testing::TestWithParam<const char*> {
 protected:
  template <class Declare>
  absl::Status Run(Declare declare) {
    auto runtime = Runtime::Create({.devices = "host:1"});
    PENSTOCK_RETURN_IF_ERROR(runtime.status());
    Graph g("g");
    const auto x = g.Input<int32_t>("x", {4, 10});
    const auto y = g.Output<int32_t>("y", {4, 10});
    declare(g, x, y);
    PENSTOCK_ASSIGN_OR_RETURN(Executable exec, runtime->Compile(g));
    g = Graph("another");  // the executable keeps the names
    const std::vector<int32_t> from(40, 7);
    std::vector<int32_t> to(40);
    PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run, exec.Launch(exec.bindings().Set(x, from).Set(y, to)));
    return run.Wait();
  }
  using Buffer = BufferHandle<int32_t>;

  const ModeScope mode_{GetParam()};
};

TEST_P(CheckedViews, AnIndexOutsideNamesNodeBufferAndIndex) {
  const absl::Status status = Run([](Graph& g, Buffer x, Buffer y) {
    g.ParallelFor(std::string("shi") + "ft", {4, 10}, Shift{1}, Read(x), Write(y));
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("graph 'g' node 'shift' (checked_views_test.cc:"), HasSubstr(" on host:0: "),
                    HasSubstr(", 10) of buffer 'x', which has 1 x 4 x 10 elements there; keep")));
}

TEST_P(CheckedViews, IndicesInsideAreTaken) {
  EXPECT_OK(Run([](Graph& g, Buffer x, Buffer y) {
    g.ParallelFor("shift", {4, 9}, Shift{1}, Read(x), Write(y, Slice({0, 0}, {4, 9})));
    g.Fill("rest", Write(y, Slice({0, 9}, {4, 1})), 0);
  }));
}

// A box counts, not the buffer it lies in.
TEST_P(CheckedViews, HostNodesAndFallbacksAndPartsAreCheckedToo) {
  const absl::Status host = Run([](Graph& g, Buffer x, Buffer y) {
    g.Host(
        "host", [](View<const int32_t> from, View<int32_t> to) { to(0) = from(2, 0); }, Read(x, Slice({1, 2}, {2, 3})),
        Write(y));
  });
  EXPECT_THAT(Text(host),
              AllOf(HasSubstr("node 'host'"), HasSubstr("index (2, 0) of buffer 'x', which has 1 x 2 x 3")));
  const absl::Status fallback = Run([](Graph& g, Buffer x, Buffer y) {
    g.Kernel("kernel", &NoKernel, Threads(1), Read(x), Write(y))
        .HostFallback([](View<const int32_t> from, View<int32_t> to) { to(-1) = from(39); });
  });
  EXPECT_THAT(Text(fallback), AllOf(HasSubstr("node 'kernel'"), HasSubstr("index (-1) of buffer 'y'")));
}

TEST_P(CheckedViews, ListsAndTheirViewsAreChecked) {
  const auto touch = [&](int64_t view, int64_t at) {
    return Text(Run([&](Graph& g, Buffer x, Buffer y) {
      const std::vector<AccessOf<int32_t, AccessMode::kRead>> parts{Read(x), Read(x, Slice({0, 0}, {1, 5}))};
      g.ParallelFor("touch", 40, Touch{view, at}, All(parts), Write(y));
    }));
  };
  EXPECT_EQ(touch(1, 4), "");
  EXPECT_THAT(touch(1, 5), AllOf(HasSubstr("node 'touch'"), HasSubstr("index (5) of buffer 'x', which has 1 x 1 x 5")));
  EXPECT_THAT(touch(2, 0), AllOf(HasSubstr("node 'touch'"), HasSubstr("View 2 of a list of 2; keep")));
}

// A short text of parts lies in its Name, which moves when the graph has more buffers.
TEST_P(CheckedViews, ANameOfPartsIsKept) {
  EXPECT_THAT(Text(Run([](Graph& g, Buffer x, Buffer y) {
                const auto row = g.Buffer<int32_t>(Name("row", 3), 4);
                g.Fill("zero", Write(row), 0);
                g.Host(
                    "host", [](View<const int32_t>, View<const int32_t> of, View<int32_t> to) { to(0) = of(4); },
                    Read(x), Read(row), Write(y));
                for (int i = 0; i < 40; ++i) g.Fill(Name("fill", i), Write(g.Buffer<int32_t>(Name("more", i), 1)), 0);
              })),
              AllOf(HasSubstr("node 'host'"), HasSubstr("index (4) of buffer 'row 3', which has 1 x 1 x 4")));
}

INSTANTIATE_TEST_SUITE_P(Modes, CheckedViews, testing::Values("stream", "graph"));

// Views of boxes in larger buffers: exactly the elements of the box can be reached, however they are indexed.
TEST(CheckedView, HasExactlyTheElementsOfItsBox) {
  std::mt19937 rng(20261126);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(most + 1)); };
  std::vector<char> memory(200);
  for (int round = 0; round < (kSanitized ? 50 : 500); ++round) {
    View<char> view{memory.data(), 1 + upto(2), upto(3), upto(4), 0, 0};
    view.pitch = view.width + upto(2);
    view.slice = view.pitch * (view.height + upto(1));
    std::set<int64_t> elements, rows;
    for (int64_t z = -1; z <= view.depth; ++z) {
      for (int64_t y = -1; y <= view.height; ++y) {
        const bool row = z >= 0 && z < view.depth && y >= 0 && y < view.height;
        if (row && view.pitch > 0) rows.insert((z * view.slice + y * view.pitch) / view.pitch);
        for (int64_t x = -1; x <= view.width; ++x) {
          const bool inside = row && x >= 0 && x < view.width;
          if (inside) elements.insert(z * view.slice + y * view.pitch + x);
          ASSERT_EQ(Has(view, z, y, x), inside);
        }
      }
    }
    for (int64_t at = -2; at < 80; ++at) {
      ASSERT_EQ(Has(view, at), elements.count(at) == 1) << round << ' ' << at;
      const bool row = view.width > 0 && rows.count(at) == 1;
      ASSERT_EQ(Has(view, at, 0), row) << round << ' ' << at;
    }
  }
}

// Their functions have other names, so files with and without checks do not link.
TEST(CheckedView, IsAnotherTypeThanTheUncheckedView) {
  EXPECT_THAT(typeid(View<float>).name(), HasSubstr("checked_views"));
  EXPECT_THAT(typeid(Views<float>).name(), HasSubstr("checked_views"));
  EXPECT_THAT((typeid(ViewTable<float, 3>).name()), HasSubstr("checked_views"));
}

}  // namespace
}  // namespace penstock::checked_views_test

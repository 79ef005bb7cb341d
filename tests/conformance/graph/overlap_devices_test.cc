// Overlap within a run on two devices, proved by rendezvous and not by time: a kernel that computes the inside of a
// part spins until the neighbour's edge has been computed, copied and read beside it. It ends only if edges are not
// queued behind insides and copies between devices not behind kernels. Everything is declared in the worst order, the
// insides first, and without a priority.
//
// The words by which kernels talk are in pinned memory. A kernel gives up after 10 s, so that a broken library fails
// the test instead of hanging the machine. Kernels are of one block each, so that all of them fit on a GPU at once.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/device_words.h"

namespace penstock::conformance::overlap_devices_test {
namespace {

constexpr int64_t kWidth = 64;
constexpr int kSteps = 3, kMore = 3 * kSteps;

struct Words {
  int32_t arrived[2][kSteps];  // of a device and step: the neighbour's edge has been read
  int32_t timed_out;
};

PENSTOCK_HOST_DEVICE void AwaitArrival(Words* words, int device, int step) {
  const int64_t until = Nanoseconds() + int64_t{10} * 1000 * 1000 * 1000;
  while (LoadWord(&words->arrived[device][step]) == 0 && LoadWord(&words->timed_out) == 0) {
    if (Nanoseconds() > until) StoreWord(&words->timed_out, 1);
  }
}

// A part has an inside, an edge, and a copy of the neighbour's edge from the step before.
struct Inside {
  int device, step;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* words, View<const int32_t> inside, View<const int32_t> edge,
                                       View<int32_t> to) const {
    AwaitArrival(words, device, step);
    for (int64_t i = 0; i < kWidth; ++i) to(i) = 3 * inside(i) + edge(i);
  }
};
struct EdgeOf {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<const int32_t> inside, View<const int32_t> edge,
                                       View<const int32_t> halo, View<int32_t> to) const {
    for (int64_t i = 0; i < kWidth; ++i) to(i) = inside(i) + 5 * edge(i) - halo(i);
  }
};
struct Read1 {
  int device, step;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* words, View<const int32_t> other, View<int32_t> halo) const {
    for (int64_t i = 0; i < kWidth; ++i) halo(i) = other(i) + 1;
    StoreWord(&words->arrived[device][step], 1);
  }
};
struct Again {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { x(i) += 1; }
};

struct Part {
  std::vector<int32_t> inside, edge, halo;
};

std::vector<Part> OnHost(std::vector<Part> parts) {
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<Part> before = parts;
    for (size_t d = 0; d < 2; ++d) {
      for (size_t i = 0; i < kWidth; ++i) {
        const Part& from = before[d];
        parts[d].inside[i] = 3 * from.inside[i] + from.edge[i];
        parts[d].edge[i] = from.inside[i] + 5 * from.edge[i] - from.halo[i];
      }
    }
    for (size_t d = 0; d < 2; ++d) {
      for (size_t i = 0; i < kWidth; ++i) parts[d].halo[i] = parts[1 - d].edge[i] + 1;
    }
  }
  for (Part& part : parts) {
    for (int32_t& v : part.inside) v += kMore;
  }
  return parts;
}

class OverlapOverDevices : public GraphConformance {
 protected:
  void SetUp() override {
    GraphConformance::SetUp();
    if (!runtime_ || IsSkipped() || HasFatalFailure()) return;
    if (runtime_->devices().size() < 2) {
      if (RequiredDevices() >= 2) FAIL() << "PENSTOCK_REQUIRE_GPU asks for two devices";
      GTEST_SKIP() << "needs two devices";
    }
  }
  // Has host devices run so many kernels at a time.
  void MakeAgain(int kernels) {
    if (on_cuda()) return;
    runtime_.reset();
    const RuntimeOptions options{.devices = GetParam().devices, .workers = 2, .host_device_threads = kernels};
    absl::StatusOr<Runtime> made = absl::UnknownError("");
    if (checks_) made = checks_.emplace().CreateRuntime(options, GetParam().order_seed);
    else made = CreateUncheckedRuntime(options);
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }
  HostBuffer<Words> MakeWords() {
    absl::StatusOr<HostBuffer<Words>> words = runtime_->MakeHostBuffer<Words>(1);
    EXPECT_OK(words.status());
    (*words)[0] = {};
    return *std::move(words);
  }
};

// A device has a place for one more kernel beside its inside, and edges, reads and copies have to make do with it.
TEST_P(OverlapOverDevices, InsidesMayWaitForTheNeighboursEdge) {
  MakeAgain(2);
  if (HasFatalFailure()) return;
  Graph g("stencil");
  const auto words = g.Param<Words*>("words");
  const auto in = [&](const char* what, int d) { return g.Input<int32_t>(what + std::to_string(d), kWidth); };
  const auto out = [&](const char* what, int d) { return g.Output<int32_t>(what + std::to_string(d), kWidth); };
  struct Handles {
    BufferHandle<int32_t> inside[kSteps + 1], edge[kSteps + 1], halo[kSteps + 1];
  };
  Handles of[2];
  for (int d = 0; d < 2; ++d) {
    of[d].inside[0] = in("inside", d), of[d].edge[0] = in("edge", d), of[d].halo[0] = in("halo", d);
    for (int s = 1; s < kSteps; ++s) {
      const std::string at = std::to_string(d) + " " + std::to_string(s);
      of[d].inside[s] = g.Buffer<int32_t>("inside" + at, kWidth);
      of[d].edge[s] = g.Buffer<int32_t>("edge" + at, kWidth);
      of[d].halo[s] = g.Buffer<int32_t>("halo" + at, kWidth);
    }
    of[d].inside[kSteps] = out("last inside", d), of[d].edge[kSteps] = out("last edge", d);
    of[d].halo[kSteps] = out("last halo", d);
  }
  for (int s = 0; s < kSteps; ++s) {
    const auto name = [&](const char* what, int d) {
      return std::string(what) + std::to_string(d) + " " + std::to_string(s);
    };
    for (int d = 0; d < 2; ++d) {
      g.ParallelFor(name("a inside", d), 1, Inside{d, s}, words, Read(of[d].inside[s]), Read(of[d].edge[s]),
                    Write(of[d].inside[s + 1]))
          .On(d);
    }
    for (int d = 0; d < 2; ++d) {
      g.ParallelFor(name("edge", d), 1, EdgeOf{}, Read(of[d].inside[s]), Read(of[d].edge[s]), Read(of[d].halo[s]),
                    Write(of[d].edge[s + 1]))
          .On(d);
    }
    for (int d = 0; d < 2; ++d) {
      g.ParallelFor(name("read", d), 1, Read1{d, s}, words, Read(of[1 - d].edge[s + 1]), Write(of[d].halo[s + 1]))
          .On(d);
    }
  }
  for (int more = 0; more < kMore; ++more) {  // so that insides are on the longest path
    for (int d = 0; d < 2; ++d) {
      g.ParallelFor("more" + std::to_string(d) + " " + std::to_string(more), kWidth, Again{},
                    ReadWrite(of[d].inside[kSteps]))
          .On(d);
    }
  }
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->submission_report().mode, in_graphs() ? Mode::kGraph : Mode::kStream);

  std::vector<Part> parts;
  for (int d = 0; d < 2; ++d) parts.push_back({Random(kWidth), Random(kWidth), Random(kWidth)});
  for (Part& part : parts) {  // small enough for all steps
    for (std::vector<int32_t>* side : {&part.inside, &part.edge, &part.halo}) {
      for (int32_t& v : *side) v %= 1000;
    }
  }
  std::vector<Part> results(2, Part{Poisoned(kWidth), Poisoned(kWidth), Poisoned(kWidth)});
  HostBuffer<Words> latch = MakeWords();
  Bindings io = exec->bindings();
  io.Set(words, latch.data());
  for (size_t d = 0; d < 2; ++d) {
    io.Set(of[d].inside[0], parts[d].inside).Set(of[d].edge[0], parts[d].edge).Set(of[d].halo[0], parts[d].halo);
    io.Set(of[d].inside[kSteps], results[d].inside).Set(of[d].edge[kSteps], results[d].edge);
    io.Set(of[d].halo[kSteps], results[d].halo);
  }
  absl::StatusOr<penstock::Run> run = exec->Launch(io);
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(latch[0].timed_out, 0) << "an inside waited for an edge that waited for it";
  const std::vector<Part> expected = OnHost(parts);
  for (size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(results[d].inside, expected[d].inside);
    EXPECT_EQ(results[d].edge, expected[d].edge);
    EXPECT_EQ(results[d].halo, expected[d].halo);
  }
}

struct Hold {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* words, View<int32_t> x) const {
    AwaitArrival(words, 1, 0);
    x(0) = 1;
  }
};
struct Seven {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { x(i) = 7; }
};
struct AddTo1 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> x) const { x(0) += 1; }
};

class EdgesFirst : public OverlapOverDevices {};

// A host device that runs one kernel at a time must not take the inside before the edge, although more nodes follow the
// inside. Drivers that take up what is ready in another order are left out.
TEST_P(EdgesFirst, ADeviceOfOneKernelAtATimeComputesTheEdgeBeforeTheInside) {
  MakeAgain(1);
  if (HasFatalFailure()) return;
  Graph g("edge");
  const auto words = g.Param<Words*>("words");
  const auto inside = g.Output<int32_t>("inside", 1), read = g.Output<int32_t>("read", kWidth);
  const auto edge = g.Buffer<int32_t>("edge", kWidth);
  g.ParallelFor("a inside", 1, Hold{}, words, Write(inside)).On(0);
  for (int i = 0; i < 5; ++i) g.ParallelFor("more" + std::to_string(i), 1, AddTo1{}, ReadWrite(inside)).On(0);
  g.ParallelFor("edge", kWidth, Seven{}, Write(edge)).On(0);
  g.ParallelFor("read", 1, Read1{1, 0}, words, Read(edge), Write(read)).On(1);
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  std::vector<int32_t> last = {0}, seen = Poisoned(kWidth);
  for (int run = 0; run < 20; ++run) {
    HostBuffer<Words> latch = MakeWords();
    Bindings io = exec->bindings();
    absl::StatusOr<penstock::Run> launched =
        exec->Launch(io.Set(words, latch.data()).Set(inside, last).Set(read, seen));
    ASSERT_OK(launched.status());
    ASSERT_OK(launched->Wait());
    ASSERT_EQ(latch[0].timed_out, 0) << "run " << run << ": the edge waited for the inside";
    EXPECT_EQ(last[0], 6);
    EXPECT_EQ(seen, std::vector<int32_t>(kWidth, 8));
  }
}

INSTANTIATE_TEST_SUITE_P(Host, OverlapOverDevices,
                         testing::Values(Target{"host:2", "stream"}, Target{"host:3", "stream", true, 1},
                                         Target{"host:2", "graph", true}, Target{"host:3", "graph", true, 7}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, OverlapOverDevices,
                         testing::Values(Target{"cuda", "stream", true}, Target{"cuda", "graph", true}), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Host, EdgesFirst,
                         testing::Values(Target{"host:2", "stream", true}, Target{"host:2", "graph", true}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, EdgesFirst,
                         testing::Values(Target{"cuda", "stream", true}, Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::overlap_devices_test

// ps::All: accesses whose number only the running program knows, in nodes of every kind, on every driver.
#include <gmock/gmock.h>

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::all_test {
namespace {

constexpr int64_t kSize = 300;
using Reads = std::vector<AccessOf<int32_t, AccessMode::kRead>>;
using Writes = std::vector<AccessOf<int32_t, AccessMode::kWrite>>;

// Weighs each View by its place in the list.
template <class List>
PENSTOCK_HOST_DEVICE int32_t Weighed(const List& parts, int64_t i) {
  int32_t sum = 0;
  for (int64_t v = 0; v < parts.size(); ++v) sum += static_cast<int32_t>(v + 1) * parts[v](i);
  return sum;
}
struct Weigh {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t scale, Views<const int32_t> parts, int32_t* sum) const {
    sum[i] = scale * Weighed(parts, i);
  }
};
// Writes the sums of two lists over the elements of a third, which may have fewer rows.
struct Spread {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, Views<const int32_t> a, Views<int32_t> out,
                                       Views<const int32_t> b) const {
    for (const View<int32_t>& to : out) {
      if (i.y < to.height) to(i.y, i.x) = static_cast<int32_t>(to.height) * 1000 + a[0](i.y, i.x) - b[1](i.y, i.x);
    }
  }
};
struct Lengths {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, Views<const int32_t> a, Views<const int32_t> b,
                                       View<int32_t> out) const {
    out(i.y, i.x) = static_cast<int32_t>(a.size() * 10 + b.size());
  }
};
struct Assign {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t value, Views<int32_t> out) const {
    for (const View<int32_t>& to : out) to(i) = value;
  }
};
struct AddWeighed {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, Views<const int32_t> parts, Views<int32_t> out) const {
    for (const View<int32_t>& to : out) to(i) += Weighed(parts, i);
  }
};
TEST_KERNEL void WeighKernel([[maybe_unused]] ViewTable<const int32_t, 16> parts, [[maybe_unused]] int32_t* sum,
                             [[maybe_unused]] int n) {
#if defined(__CUDA_ARCH__)
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = Weighed(parts, i);
#endif
}
void WeighOnHost(Views<const int32_t> parts, int32_t* sum, int n) {
  for (int i = 0; i < n; ++i) sum[i] = Weighed(parts, i);
}

class AllConformance : public GraphConformance {
 protected:
  // Inputs of kSize elements, and accesses to them.
  void Declare(Graph& g, int count) {
    for (int v = 0; v < count; ++v) {
      inputs_.push_back(g.Input<int32_t>("in" + std::to_string(v), kSize));
      reads_.push_back(Read(inputs_.back()));
    }
  }
  // New values for all inputs, in new memory.
  void Bind(Bindings& io) {
    values_.clear();
    for (const BufferHandle<int32_t>& input : inputs_) {
      values_.push_back(Random(kSize));
      for (int32_t& value : values_.back()) value %= 1000;
      io.Set(input, values_.back());
    }
  }
  std::vector<int32_t> Sums(int32_t scale) const {
    std::vector<int32_t> sums(kSize);
    for (size_t v = 0; v < values_.size(); ++v) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += scale * static_cast<int32_t>(v + 1) * values_[v][i];
    }
    return sums;
  }

  std::vector<BufferHandle<int32_t>> inputs_;
  Reads reads_;
  std::vector<std::vector<int32_t>> values_;
};

// Each count needs another instance of the kernel, and each launch binds other memory and another parameter.
TEST_P(AllConformance, AFunctorSeesAsManyViewsAsTheProgramNames) {
  for (const int count : {0, 1, 8, 9, 33, 80}) {
    inputs_.clear(), reads_.clear();
    Graph g("weigh");
    Declare(g, count);
    auto scale = g.Param<int32_t>("scale");
    auto sum = g.Output<int32_t>("sum", kSize);
    g.ParallelFor("weigh", kSize, Weigh{}, scale, All(reads_), Write(sum));
    auto exec = runtime_->Compile(g, {.slots = 2});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (int32_t launch = 1; launch <= 5; ++launch) {
      Bind(io);
      std::vector<int32_t> got = Poisoned(kSize);
      auto run = exec->Launch(io.Set(scale, launch).Set(sum, got));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      ASSERT_EQ(got, Sums(launch)) << count;
    }
  }
}

// The accesses of a list order nodes as others do, also where they are States, parts and outputs.
TEST_P(AllConformance, ListsOfPartsAndStatesOrderNodes) {
  auto state = runtime_->MakeState<int32_t>("state", {4, 10});
  ASSERT_OK(state.status());
  Graph g("spread");
  auto in = g.Input<int32_t>("in", {8, 10});
  auto out = g.Output<int32_t>("out", {7, 10});
  auto mid = g.Buffer<int32_t>("mid", {4, 10});
  auto copy = g.Output<int32_t>("copy", {4, 10});
  g.ParallelFor("spread", {4, 10}, Spread{}, All(Reads{Read(in, Slice({4, 0}, {4, 10}))}),
                All(Writes{Write(out, Slice({0, 0}, {3, 10})), Write(mid), Write(*state)}),
                All(Reads{Read(in), Read(in, Slice({1, 0}, {4, 10}))}));
  g.ParallelFor("again", {4, 10}, Spread{}, All(Reads{Read(mid)}), All(Writes{Write(out, Slice({3, 0}, {4, 10}))}),
                All(Reads{Read(in), Read(*state)}));
  g.Copy("copy", mid, copy);
  std::vector<int32_t> from = Random(80), to = Poisoned(70), mids = Poisoned(40);
  for (int32_t& value : from) value %= 1000;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(in, from).Set(out, to).Set(copy, mids); }));
  for (size_t y = 0; y < 4; ++y) {
    for (size_t x = 0; x < 10; ++x) {
      const int32_t difference = from[(y + 4) * 10 + x] - from[(y + 1) * 10 + x];
      if (y < 3) {
        EXPECT_EQ(to[y * 10 + x], 3000 + difference);
      }
      EXPECT_EQ(mids[y * 10 + x], 4000 + difference);
      EXPECT_EQ(to[(y + 3) * 10 + x], 4000);  // the buffer and the State are equal
    }
  }
}

// The lists of whole buffers and States, from a vector, a span and an array, are those that All makes.
TEST_P(AllConformance, ListsOfAllBuffersOfARange) {
  std::array<State<int32_t>, 2> states;
  for (size_t s = 0; s < states.size(); ++s) {
    auto made = runtime_->MakeState<int32_t>("state" + std::to_string(s), kSize);
    ASSERT_OK(made.status());
    states[s] = *made;
  }
  Graph g("ranges");
  Declare(g, 5);
  std::vector<BufferHandle<int32_t>> sums{g.Output<int32_t>("a", kSize), g.Output<int32_t>("b", kSize)};
  g.ParallelFor("reset", kSize, Assign{}, 7, WriteAll(sums));
  g.ParallelFor("states", kSize, Assign{}, 11, WriteAll(states));
  g.ParallelFor("sums", kSize, AddWeighed{}, ReadAll(inputs_), ReadWriteAll(std::span(sums).first(1)));
  g.ParallelFor("rest", kSize, AddWeighed{}, ReadAll(states), ReadWriteAll(sums));
  std::vector<int32_t> a = Poisoned(kSize), b = Poisoned(kSize);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) {
    Bind(io);
    io.Set(sums[0], a).Set(sums[1], b);
  }));
  std::vector<int32_t> expected = Sums(1);
  for (int32_t& value : expected) value += 7 + 3 * 11;
  EXPECT_EQ(a, expected);
  EXPECT_EQ(b, std::vector<int32_t>(kSize, 7 + 3 * 11));
}

TEST_P(AllConformance, KernelsAndLaunchesAndHostNodesTakeLists) {
  Graph g("kinds");
  Declare(g, 11);
  auto by_kernel = g.Output<int32_t>("by kernel", kSize), by_host = g.Output<int32_t>("by host", kSize);
  auto seen = g.InOut<int32_t>("seen", 3);
  g.Kernel("kernel", &WeighKernel, Threads(kSize), All(reads_), Write(by_kernel), static_cast<int>(kSize))
      .HostFallback(WeighOnHost);
  g.Host(
      "host",
      [](Views<const int32_t> parts, std::span<int32_t> sum) {
        for (size_t i = 0; i < sum.size(); ++i) sum[i] = Weighed(parts, static_cast<int64_t>(i));
      },
      All(reads_), Write(by_host));
  int64_t submitted = 0;
  g.Launch(
       "launch", [&](LaunchContext&, Views<const int32_t> parts, int32_t*) { submitted = parts.size(); }, All(reads_),
       ReadWrite(seen))
      .HostFallback([&](Views<const int32_t> parts, int32_t*) { submitted = parts.size(); });
  std::vector<int32_t> kernel = Poisoned(kSize), host = Poisoned(kSize), ignored(3);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) {
    Bind(io);
    io.Set(by_kernel, kernel).Set(by_host, host).Set(seen, ignored);
  }));
  EXPECT_EQ(kernel, Sums(1));
  EXPECT_EQ(host, Sums(1));
  EXPECT_EQ(submitted, 11);
}

// The host fallback counts its calls: on a host device it is the node too.
TEST_P(AllConformance, AreCheckedAgainstTheHost) {
  Graph g("checked");
  Declare(g, 16);
  auto sum = g.Output<int32_t>("sum", kSize);
  int32_t wrong = on_cuda() ? 1 : 0;
  g.Kernel("kernel", &WeighKernel, Threads(kSize), All(reads_), Write(sum), static_cast<int>(kSize))
      .HostFallback([&](Views<const int32_t> parts, int32_t* to, int n) {
        WeighOnHost(parts, to, n);
        to[3] += wrong++;
      });
  std::vector<int32_t> got = Poisoned(kSize);
  const absl::Status status = RunOnce(g,
                                      [&](Bindings& io) {
                                        Bind(io);
                                        io.Set(sum, got);
                                      },
                                      {.check_against_host = true});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message().data(), status.message().size()),
              testing::HasSubstr("differ in buffer 'sum'; element 3 is"));
}

// Each launch binds other device buffers, and a graph sets their addresses in its nodes.
TEST_P(AllConformance, BoundDeviceBuffersMayChange) {
  Graph g("device");
  std::vector<BufferHandle<int32_t>> parts;
  Reads reads;
  for (int v = 0; v < 3; ++v) {
    parts.push_back(g.Input<int32_t>("part" + std::to_string(v), kSize, kDevice));
    reads.push_back(Read(parts.back()));
  }
  auto sum = g.Output<int32_t>("sum", kSize);
  g.ParallelFor("weigh", kSize, Weigh{}, 1, All(reads), Write(sum));
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  std::vector<DeviceBuffer<int32_t>> memory;
  for (int32_t v = 0; v < 4; ++v) {
    auto made = runtime_->MakeDeviceBuffer<int32_t>(kSize);
    ASSERT_OK(made.status());
    Graph fill("fill");
    auto to = fill.Output<int32_t>("to", kSize, kDevice);
    fill.Fill("fill", to, 7 * v + 1);
    ASSERT_OK(RunOnce(fill, [&](Bindings& io) { io.Set(to, *made); }));
    memory.push_back(*std::move(made));
  }
  for (const auto& order : {std::array<int32_t, 3>{0, 1, 2}, {3, 2, 1}, {1, 3, 0}}) {
    Bindings io = exec->bindings();
    int32_t expected = 0;
    for (int32_t v = 0; v < 3; ++v) {
      io.Set(parts[v], memory[order[v]]);
      expected += (v + 1) * (7 * order[v] + 1);
    }
    std::vector<int32_t> got = Poisoned(kSize);
    auto run = exec->Launch(io.Set(sum, got));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(got, std::vector<int32_t>(kSize, expected));
  }
}

// Lists of other lengths are another graph, also if the accesses are the same one after the other.
TEST_P(AllConformance, OfAStepDeclaredAgainHaveTheirOwnLengths) {
  GraphCache cache(*runtime_);
  const std::vector<int32_t> from = Random(40);
  for (const size_t first : {1, 2, 2, 1}) {
    std::vector<int32_t> to = Poisoned(40);
    auto run = cache.Launch([&](Graph& g, Bindings& io) {
      auto in = g.Input<int32_t>("in", {4, 10}), out = g.Output<int32_t>("out", {4, 10});
      const Reads all{Read(in), Read(in), Read(in)};
      const auto end = all.begin() + static_cast<int64_t>(first);
      g.ParallelFor("lengths", {4, 10}, Lengths{}, All(Reads(all.begin(), end)), All(Reads(end, all.end())),
                    Write(out));
      io.Set(in, from).Set(out, to);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(to, std::vector<int32_t>(40, static_cast<int32_t>(first * 10 + 3 - first)));
  }
  EXPECT_EQ(cache.counts().compiled, 2);
}

TEST_P(AllConformance, MoreThanAKernelHasRoomForAreRefused) {
  Graph g("many");
  Declare(g, 100);
  auto sum = g.Output<int32_t>("sum", kSize);
  g.Kernel("kernel", &WeighKernel, Threads(kSize), All(reads_), Write(sum), 1).HostFallback(WeighOnHost);
  g.ParallelFor("for", kSize, Weigh{}, 1, All(reads_), ReadWrite(sum));
  const absl::Status status = runtime_->Compile(g).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string text(status.message().data(), status.message().size());
  EXPECT_THAT(text, testing::HasSubstr("argument 0 is All of 100 accesses; the kernel has room for 16 there; give its "
                                       "ViewTable more room, or name fewer"));
#if defined(__CUDACC__)
  EXPECT_THAT(text,
              testing::HasSubstr("argument 1 is All of 100 accesses; the kernel has room for 82 there; name fewer "
                                 "of them in each of several nodes"));
#endif
}

INSTANTIATE_TEST_SUITE_P(Host, AllConformance, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, AllConformance, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::all_test

// Arrays in shards on every driver, against arrays in one piece that the tests compute without the library.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "penstock/sharded.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::sharded_test {
namespace {

// Elements of an array of three dimensions in C order.
struct Whole {
  int64_t size[3] = {1, 1, 1};
  std::vector<uint32_t> data;
  uint32_t& At(int64_t z, int64_t y, int64_t x) { return data[static_cast<size_t>((z * size[1] + y) * size[2] + x)]; }
};

// Weighs neighbours in one dimension differently, so that no exchange of two shards goes unseen. `from` has `width`
// more elements at both ends of dimension `dim`.
struct Neighbours {
  int dim;
  int64_t width;
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<const uint32_t> from, View<uint32_t> to) const {
    uint32_t sum = 1;
    for (int64_t k = 0; k <= 2 * width; ++k) {
      const int64_t z = i.z + (dim == 0 ? k : 0), y = i.y + (dim == 1 ? k : 0), x = i.x + (dim == 2 ? k : 0);
      sum = sum * 31 + from(z, y, x);
    }
    to(i.z, i.y, i.x) = sum;
  }
};

class ShardedConformance : public GraphConformance {
 protected:
  int devices() const { return static_cast<int>(runtime_->devices().size()); }
  // Shards of random weights on the devices in turn; each is `least` long at least.
  std::vector<DeviceShare> RandomShares(int64_t elements, int64_t least) {
    std::vector<DeviceShare> shares;
    const auto most = std::min<int64_t>(least > 0 ? elements / (2 * least) : 9, 9);
    const auto count = static_cast<int>(1 + rng_() % static_cast<uint64_t>(std::max<int64_t>(most, 1)));
    for (int s = 0; s < count; ++s) shares.emplace_back(s % devices(), 1 + static_cast<double>(rng_() % 100) / 100);
    return shares;
  }
  Whole RandomWhole(int64_t z, int64_t y, int64_t x) {
    Whole whole{{z, y, x}, std::vector<uint32_t>(static_cast<size_t>(z * y * x))};
    for (uint32_t& element : whole.data) element = static_cast<uint32_t>(rng_());
    return whole;
  }
};

using Bits = std::vector<uint32_t>;

// One step after the other over the whole array, whose ends in `dim` are `width` of the halo's.
void Step(Whole& whole, int dim, int64_t width, bool periodic) {
  const int64_t inner = whole.size[dim] - 2 * width;
  Whole from = [&] {
    Whole copy = whole;
    if (!periodic) return copy;
    for (int64_t z = 0; z < whole.size[0]; ++z) {
      for (int64_t y = 0; y < whole.size[1]; ++y) {
        for (int64_t x = 0; x < whole.size[2]; ++x) {
          int64_t at[3] = {z, y, x};
          at[dim] = (at[dim] - width + inner) % inner + width;
          copy.At(z, y, x) = whole.At(at[0], at[1], at[2]);
        }
      }
    }
    return copy;
  }();
  for (int64_t z = 0; z < whole.size[0]; ++z) {
    for (int64_t y = 0; y < whole.size[1]; ++y) {
      for (int64_t x = 0; x < whole.size[2]; ++x) {
        const int64_t at[3] = {z, y, x};
        if (at[dim] < width || at[dim] >= whole.size[dim] - width) continue;
        uint32_t sum = 1;
        for (int64_t k = -width; k <= width; ++k) {
          sum = sum * 31 + from.At(z + (dim == 0 ? k : 0), y + (dim == 1 ? k : 0), x + (dim == 2 ? k : 0));
        }
        whole.At(z, y, x) = sum;
      }
    }
  }
}

// The outer halos hold what was exchanged, if anything was.
void KeepOutside(const Whole& whole, int dim, int64_t width, Bits& found) {
  for (size_t i = 0; i < found.size(); ++i) {
    const auto n = static_cast<int64_t>(i);
    const int64_t at[3] = {n / (whole.size[1] * whole.size[2]), n / whole.size[2] % whole.size[1], n % whole.size[2]};
    if (at[dim] < width || at[dim] >= whole.size[dim] - width) found[i] = whole.data[i];
  }
}

TEST_P(ShardedConformance, AStencilOverShardsIsThatOfTheWhole) {
  for (int round = 0; round < 6; ++round) {
    const int dim = round % 3;
    const int64_t width = 1 + round % 2;
    const bool periodic = round >= 3;
    Whole whole = RandomWhole(dim == 0 ? 23 : 3, dim == 1 ? 23 : 4, dim == 2 ? 23 : 5);
    const Bits first = whole.data;
    Extent extent(whole.size[0], whole.size[1], whole.size[2]);
    Graph graph("stencil");
    const auto in = graph.Input<uint32_t>("in", extent);
    const auto out = graph.Output<uint32_t>("out", extent);
    extent.dims[static_cast<size_t>(dim)].value -= 2 * width;
    const Sharding cut = Blocked(dim, RandomShares(23 - 2 * width, width));
    const Halo halo = periodic ? Halo::Periodic(width) : Halo(width);
    const ShardedHandle<uint32_t> u[] = {graph.Sharded<uint32_t>("u", extent, cut, halo),
                                         graph.Sharded<uint32_t>("v", extent, cut, halo)};
    Scatter(graph, "set", in, u[0]);
    Scatter(graph, "ends", in, u[1]);
    constexpr int kSteps = 3;
    for (int step = 0; step < kSteps; ++step) {
      const auto scope = graph.Scope(Name("step", step));
      Exchange(graph, "halo", u[step % 2]);
      ForEachPart(graph, u[1 - step % 2], [&](const ShardPart& part) {
        graph.ParallelFor("of", part.extent, Neighbours{dim, width}, ReadWithHalo(u[step % 2], part),
                          Write(u[1 - step % 2], part));
      });
      Step(whole, dim, width, periodic);
    }
    Gather(graph, "get", u[kSteps % 2], out);
    Bits found(first.size(), 0x5a5a5a5a);
    ASSERT_OK(RunOnce(graph, [&](Bindings& io) { io.Set(in, first).Set(out, found); }));
    if (periodic) KeepOutside(whole, dim, width, found);
    ASSERT_EQ(found, whole.data) << "round " << round;
  }
}

// The same with a View for each neighbour instead of an exchange.
struct Shifted {
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<const uint32_t> before, View<const uint32_t> at,
                                       View<const uint32_t> after, View<uint32_t> to) const {
    to(i.z, i.y, i.x) = ((31 + before(i.z, i.y, i.x)) * 31 + at(i.z, i.y, i.x)) * 31 + after(i.z, i.y, i.x);
  }
};

struct Tripled {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const uint32_t> from, View<uint32_t> to) const {
    to(i) = 3 * from(i);
  }
};

TEST_P(ShardedConformance, AStencilThatReadsNeighboursWhereTheyAreIsThatOfTheWhole) {
  for (int round = 0; round < 12; ++round) {
    const int dim = round % 3;
    Whole whole = RandomWhole(dim == 0 ? 23 : 3, dim == 1 ? 23 : 4, dim == 2 ? 23 : 5);
    const Bits first = whole.data;
    Extent extent(whole.size[0], whole.size[1], whole.size[2]);
    Graph graph("shifted");
    const auto in = graph.Input<uint32_t>("in", extent);
    const auto out = graph.Output<uint32_t>("out", extent);
    extent.dims[static_cast<size_t>(dim)].value -= 2;
    const bool periodic = round >= 6;
    const Sharding cut = Blocked(dim, round % 4 == 3 ? RandomShares(2, 1) : RandomShares(21, 1));
    const Halo halo = periodic ? Halo::Periodic(1) : Halo(1);
    const ShardedHandle<uint32_t> u[] = {graph.Sharded<uint32_t>("u", extent, cut, halo),
                                         graph.Sharded<uint32_t>("v", extent, cut, halo)};
    Scatter(graph, "set", in, u[0]);
    Scatter(graph, "ends", in, u[1]);
    constexpr int kSteps = 5;
    for (int step = 0; step < kSteps; ++step) {
      const auto scope = graph.Scope(Name("step", step));
      const auto &from = u[step % 2], &to = u[1 - step % 2];
      ForEachPart(graph, to, [&](const ShardPart& part) {
        graph.ParallelFor("of", part.extent, Shifted{}, ReadShifted(from, part, -1), Read(from, part),
                          ReadShifted(from, part, 1), Write(to, part));
      });
      Step(whole, dim, 1, periodic);
    }
    Gather(graph, "get", u[kSteps % 2], out);
    Bits found(first.size(), 0x5a5a5a5a);
    ASSERT_OK(RunOnce(graph, [&](Bindings& io) { io.Set(in, first).Set(out, found); }));
    if (periodic) KeepOutside(whole, dim, 1, found);
    ASSERT_EQ(found, whole.data) << "round " << round;
    if (checks_ && !on_cuda()) {
      EXPECT_EQ(checks_->witness().totals().peer.calls, 0) << "round " << round;
    }
  }
}

// Nothing else opens the link to the device of the State.
TEST_P(ShardedConformance, AStateOfADeviceWithoutNodesIsReadWhereItIs) {
  const Bits first = RandomWhole(1, 1, 100).data;
  auto state = runtime_->MakeState<uint32_t>("far", 100, first, {.device = devices() - 1});
  ASSERT_OK(state.status());
  Graph graph("far");
  const auto out = graph.Output<uint32_t>("out", 100);
  graph.ParallelFor("read", 100, Tripled{}, Unordered(WithoutCopy(Read(*state))), Write(out)).On(0);
  Bits found(100, 0x5a5a5a5a), expected = first;
  for (uint32_t& element : expected) element *= 3;
  ASSERT_OK(RunOnce(graph, [&](Bindings& io) { io.Set(out, found); }));
  EXPECT_EQ(found, expected);
  if (checks_ && !on_cuda()) {
    EXPECT_EQ(checks_->witness().totals().peer.calls, 0);
  }
}

TEST_P(ShardedConformance, AnArrayThatIsCutAgainKeepsItsElements) {
  for (int round = 0; round < 6; ++round) {
    const Whole whole = RandomWhole(13, 14, 15);
    const Extent extent(13, 14, 15);
    Graph graph("cut again");
    const auto in = graph.Input<uint32_t>("in", extent);
    const auto out = graph.Output<uint32_t>("out", extent);
    const int from_dim = round % 3, to_dim = round / 2;
    const auto from = graph.Sharded<uint32_t>(
        "from", extent,
        round % 2 == 0 ? Blocked(from_dim, RandomShares(13, 0)) : Cyclic(from_dim, 2, RandomShares(13, 0)));
    const auto to = graph.Sharded<uint32_t>("to", extent, Cyclic(to_dim, 3, RandomShares(13, 0)));
    const auto with_halo = graph.Sharded<uint32_t>("halo", extent, Blocked(to_dim, RandomShares(13, 1)), Halo(1));
    Scatter(graph, "set", in, from);
    Exchange(graph, "deal", from, to);
    Exchange(graph, "collect", to, with_halo);
    Gather(graph, "get", with_halo, out);
    Bits found(whole.data.size(), 0x5a5a5a5a);
    ASSERT_OK(RunOnce(graph, [&](Bindings& io) { io.Set(in, whole.data).Set(out, found); }));
    ASSERT_EQ(found, whole.data) << "round " << round;
  }
}

// x -> a x + b: associative, and not commutative.
struct Map {
  uint32_t a, b;
};
struct Then {
  PENSTOCK_HOST_DEVICE Map operator()(Map first, Map then) const {
    return {first.a * then.a, first.b * then.a + then.b};
  }
};

TEST_P(ShardedConformance, AReduceGoesThroughTheShardsInOrder) {
  constexpr int64_t kH = 50, kW = 60;
  std::vector<Map> maps(kH * kW);
  for (Map& map : maps) map = {static_cast<uint32_t>(rng_()) | 1, static_cast<uint32_t>(rng_())};
  Graph graph("reduce");
  const auto in = graph.Input<Map>("in", {kH, kW});
  const auto out = graph.Output<Map>("out", 1);
  const auto u = graph.Sharded<Map>("u", {kH, kW}, Blocked(0, {{0, 2}, {devices() - 1, 1}, {0, 0}, {0, 1}}));
  Scatter(graph, "set", in, u);
  Reduce(graph, "all", u, Write(out), Then{}, Map{1, 0});
  std::vector<Map> found = {{7, 7}};
  ASSERT_OK(RunOnce(graph, [&](Bindings& io) { io.Set(in, maps).Set(out, found); }));
  Map expected{1, 0};
  for (const Map& map : maps) expected = Then{}(expected, map);
  EXPECT_EQ(found[0].a, expected.a);
  EXPECT_EQ(found[0].b, expected.b);
}

TEST_P(ShardedConformance, AStateInShardsKeepsItsElementsFromRunToRun) {
  for (int dim = 0; dim < 3; ++dim) {
    const int64_t side = 10;
    const Whole first = RandomWhole(side, side, side);
    const Sharding cut = Blocked(dim, RandomShares(side, 1));
    auto u = runtime_->MakeShardedState<uint32_t>("u", {side, side, side}, cut, first.data, Halo(1));
    auto v = runtime_->MakeShardedState<uint32_t>("v", {side, side, side}, cut, {}, Halo(1));
    ASSERT_OK(u.status());
    ASSERT_OK(v.status());
    Graph graph("steps");
    const ShardedHandle<uint32_t> ends[] = {graph.Use(*u), graph.Use(*v)};
    for (int step = 0; step < 2; ++step) {
      const auto scope = graph.Scope(Name("step", step));
      Exchange(graph, "halo", ends[step]);
      ForEachPart(graph, ends[step], [&](const ShardPart& part) {
        graph.ParallelFor("of", part.extent, Neighbours{dim, 1}, ReadWithHalo(ends[step], part),
                          Write(ends[1 - step], part));
      });
    }
    // The halos outside the array stay the zeros that they were.
    Whole whole{{side, side, side}, {}};
    whole.size[dim] += 2;
    whole.data.resize(static_cast<size_t>(side * side * (side + 2)));
    const auto inside = [&](auto f) {
      int64_t n = 0;
      for (int64_t i = 0; i < static_cast<int64_t>(whole.data.size()); ++i) {
        const int64_t at[3] = {i / (whole.size[1] * whole.size[2]), i / whole.size[2] % whole.size[1],
                               i % whole.size[2]};
        if (at[dim] > 0 && at[dim] <= side) f(static_cast<size_t>(n++), static_cast<size_t>(i));
      }
    };
    inside([&](size_t of, size_t in_whole) { whole.data[in_whole] = first.data[of]; });
    for (int run = 0; run < 2; ++run) {
      ASSERT_OK(RunOnce(graph, [](Bindings&) {}));
      Step(whole, dim, 1, false);
      Step(whole, dim, 1, false);
      Bits expected(first.data.size()), found(first.data.size(), 0x5a5a5a5a);
      inside([&](size_t of, size_t in_whole) { expected[of] = whole.data[in_whole]; });
      ASSERT_OK(u->Read(found));
      EXPECT_EQ(found, expected) << "dimension " << dim << ", run " << run;
    }
    EXPECT_EQ(u->Set(Bits(5)).code(), absl::StatusCode::kInvalidArgument);
    ASSERT_OK(u->Reset());
    Bits found(first.data.size(), 0x5a5a5a5a);
    ASSERT_OK(u->Read(found));
    EXPECT_EQ(found, Bits(first.data.size(), 0));
  }
  EXPECT_EQ(ShardedState<uint32_t>().Reset().code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status wide =
      runtime_->MakeShardedState<uint32_t>("wide", {4, 4}, Blocked(0, {0, 0, 0}), {}, Halo(2)).status();
  EXPECT_EQ(wide.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(wide.message().find("sharded state 'wide'"), std::string::npos) << wide;
}

// Their vectors are no arrays.
TEST_P(ShardedConformance, AStateOfTruthValuesIsSetAndRead) {
  constexpr int64_t kH = 6, kW = 5;
  std::array<bool, kH * kW> first{}, found{};
  for (bool& value : first) value = rng_() % 2 == 0;
  const auto state =
      runtime_->MakeShardedState<bool>("flags", {kH, kW}, Blocked(1, {0, devices() - 1}), first, Halo(1));
  ASSERT_OK(state.status());
  ASSERT_OK(state->Read(found));
  EXPECT_EQ(found, first);
}

TEST_P(ShardedConformance, AShardOnADeviceThatIsNotThereIsRefused) {
  Graph graph("g");
  const auto in = graph.Input<uint32_t>("in", 8);
  const auto u = graph.Sharded<uint32_t>("u", 8, Blocked(0, {0, devices()}));
  Scatter(graph, "set", in, u);
  const absl::Status status = runtime_->Compile(graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'set/part 1'"), std::string::npos) << status;
  EXPECT_NE(status.message().find("pinned to device " + std::to_string(devices())), std::string::npos) << status;
}

// Write of a part that the shard does not have would be lost in its halo.
TEST_P(ShardedConformance, APartOfAnotherCutIsRefused) {
  Graph graph("g");
  const auto u = graph.Sharded<uint32_t>("u", 20, Blocked(0, {0, 0}), Halo(2));
  const auto v = graph.Sharded<uint32_t>("v", 20, Blocked(0, {{0, 2}, {0, 1}}), Halo(2));
  ForEachShard(graph, v, [&](const Shard& shard) { graph.Fill("f", Write(u, shard.blocks[0]), 1U); });
  const absl::Status status = runtime_->Compile(graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'shard 0/f'"), std::string::npos) << status;
  EXPECT_NE(status.message().find("offset 0 of its slice of 'u 0' (sharded_test.cc:"), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(Host, ShardedConformance, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, ShardedConformance, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::sharded_test

// Scan: the same bits on every driver as the order that scan.h describes, which is written down here once more, from
// sums of all blocks; for integers also as the standard library's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "penstock/graph_cache.h"
#include "penstock/scan.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::scan_test {
namespace {

constexpr int64_t kMost = 100'003;

// What comes before each value, and with each value, by sums of aligned blocks of 2^k values for every k.
template <class V, class Op>
std::vector<V> Expected(std::span<const V> values, const Op& op, const std::optional<V>& initial, bool inclusive) {
  std::vector<std::vector<V>> blocks{{values.begin(), values.end()}};
  while (blocks.back().size() > 1) {
    const std::vector<V>& below = blocks.back();
    std::vector<V> next;
    for (size_t i = 0; i + 1 < below.size(); i += 2) next.push_back(op(below[i], below[i + 1]));
    blocks.push_back(std::move(next));
  }
  std::vector<V> out;
  for (size_t i = 0; i < values.size(); ++i) {
    std::optional<V> all = initial;
    size_t at = 0;
    for (size_t k = blocks.size(); k-- > 0;) {
      if ((i >> k & 1) == 0) continue;
      const V& block = blocks[k][at >> k];
      all = all ? op(*all, block) : block;
      at += size_t{1} << k;
    }
    out.push_back(!inclusive ? *all : all ? op(*all, values[i]) : values[i]);
  }
  return out;
}
// Compares bits: 0 is not -0.
template <class V>
bool Same(const std::vector<V>& a, const std::vector<V>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0);
}

// x -> scale * x + shift, modulo 2^32. To compose is associative and not commutative. Three words are no power of two.
struct Affine {
  uint32_t scale, shift, maps;
};
struct Compose {
  PENSTOCK_HOST_DEVICE Affine operator()(const Affine& a, const Affine& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift, a.maps + b.maps};
  }
};
// 64 bytes, which neither commute nor associate: every other order gives another result.
struct Words {
  uint64_t at[8];
};
struct AddWords {
  PENSTOCK_HOST_DEVICE Words operator()(const Words& a, const Words& b) const {
    Words c{};
    for (int i = 0; i < 8; ++i) c.at[i] = a.at[i] * 3 + b.at[i];
    return c;
  }
};
// Ends in a multiplication and begins with an addition, which compilers would contract.
struct Drift {
  PENSTOCK_HOST_DEVICE float operator()(float a, float b) const { return (a + b) * 0.9990234F; }
};
struct Wide {
  float real, imaginary;
};
struct WideSum {
  PENSTOCK_HOST_DEVICE Wide operator()(const Wide& a, const Wide& b) const {
    return {(a.real + b.real) * 0.99951F, (a.imaginary + b.imaginary) * 1.00048F};
  }
};

// x -> scale * x + shift modulo 2^64, of which one pass takes 16 bytes.
struct Affine64 {
  uint64_t scale, shift;
};
struct Compose64 {
  PENSTOCK_HOST_DEVICE Affine64 operator()(const Affine64& a, const Affine64& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift};
  }
};
constexpr ScanOptions kAnyOrder{.order = CombineOrder::kAny};

class Scans : public GraphConformance {
 protected:
  // Of many magnitudes, so that every order of additions gives another sum.
  template <class T>
  std::vector<T> RandomOf(int64_t n) {
    std::vector<T> values(static_cast<size_t>(n));
    for (T& v : values) {
      v = static_cast<T>(std::ldexp(static_cast<double>(rng_()) - 0x1p31, static_cast<int>(rng_() % 24)));
    }
    return values;
  }
  std::vector<Affine> Maps(int64_t n) {
    std::vector<Affine> maps(static_cast<size_t>(n));
    for (Affine& m : maps) m = {static_cast<uint32_t>(rng_() | 1U), static_cast<uint32_t>(rng_()), 1};
    return maps;
  }
  // A chunk of the ring is small, so many extents take long; and a checked driver does the same arithmetic.
  std::vector<int64_t> Extents() const {
    if (GetParam().ring) return {0, 1, 33, 2049, 4097};
    std::vector<int64_t> extents{0, 1, 2, 7, 8, 9, 31, 33, 255, 257, 1000, 2047, 2048, 2049, 4096, 4097, 6151};
    if (!GetParam().checked) extents.push_back(kMost);
    return extents;
  }

  // Scans every extent and compares with what is expected.
  template <class V, class T, class Op, class Make>
  void AreThoseOfTheOrder(Make make, const Op& op, const V& initial) {
    Graph g("scans");
    auto n = g.Param<int64_t>("n", AtMost(kMost));
    auto x = g.Input<T>("x", n);
    auto with = g.Output<V>("with", n), after = g.Output<V>("after", n), before = g.Output<V>("before", n);
    Scan(g, "with", Read(x), Write(with), op);
    Scan(g, "after", Read(x), Write(after), op, initial);
    Scan(g, "before", Read(x), Write(before), op, initial, kExclusive);
    auto exec = runtime_->Compile(g, {.slots = 2});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t count : Extents()) {
      const std::vector<T> values = make(count);
      std::vector<V> converted;
      for (const T& v : values) converted.push_back(static_cast<V>(v));
      const size_t size = values.size();
      std::vector<V> got_with(size, initial), got_after(size, initial), got_before(size, initial);
      io.Set(n, count).Set(x, values).Set(with, got_with).Set(after, got_after);
      auto run = exec->Launch(io.Set(before, got_before));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      const std::span<const V> all(converted);
      EXPECT_TRUE(Same(got_with, Expected<V>(all, op, std::nullopt, true))) << count;
      EXPECT_TRUE(Same(got_after, Expected<V>(all, op, initial, true))) << count;
      EXPECT_TRUE(Same(got_before, Expected<V>(all, op, initial, false))) << count;
    }
  }
};

TEST_P(Scans, OfFloatsAreThoseOfTheOrder) {
  AreThoseOfTheOrder<float, float>([&](int64_t n) { return RandomOf<float>(n); }, Plus(), 0.125F);
}
TEST_P(Scans, OfFloatsIntoDoublesAreThoseOfTheOrder) {
  AreThoseOfTheOrder<double, float>([&](int64_t n) { return RandomOf<float>(n); }, Plus(), -3.5);
}
TEST_P(Scans, RoundEachResult) {
  AreThoseOfTheOrder<float, float>([&](int64_t n) { return RandomOf<float>(n); }, Drift{}, 1.5F);
  AreThoseOfTheOrder<Wide, Wide>(
      [&](int64_t n) {
        std::vector<Wide> values;
        for (const float v : RandomOf<float>(n)) values.push_back({v, 1 - v});
        return values;
      },
      WideSum{}, Wide{1, 2});
}
TEST_P(Scans, KeepTheOrderOfWhatDoesNotCommute) {
  AreThoseOfTheOrder<Affine, Affine>([&](int64_t n) { return Maps(n); }, Compose{}, Affine{3, 5, 0});
  AreThoseOfTheOrder<Words, Words>(
      [&](int64_t n) {
        std::vector<Words> values(static_cast<size_t>(n));
        for (Words& w : values) w = {{rng_(), rng_(), rng_(), rng_(), rng_(), 1, 2, rng_()}};
        return values;
      },
      AddWords{}, Words{{1, 7, 0, 1, 0, 0, 0, 1}});
}

TEST_P(Scans, OfIntegersAreThoseOfTheStandardLibrary) {
  Graph g("integers");
  auto n = g.Param<int32_t>("n", AtMost(kMost));
  auto x = g.Input<int32_t>("x", n);
  auto bytes = g.Input<uint8_t>("bytes", n);
  auto maps = g.Input<Affine>("maps", n);
  auto sums = g.Output<int64_t>("sums", n), offsets = g.Output<int64_t>("offsets", n);
  auto most = g.Output<uint8_t>("most", n);
  auto least = g.Output<int32_t>("least", n);
  auto composed = g.Output<Affine>("composed", n);
  Scan(g, "sums", Read(x), Write(sums));
  Scan(g, "offsets", Read(x), Write(offsets), Plus(), kExclusive);
  Scan(g, "most", Read(bytes), Write(most), Max());
  Scan(g, "least", Read(x), Write(least), Min(), {.kind = ScanKind::kExclusive, .order = CombineOrder::kAny});
  Scan(g, "composed", Read(maps), Write(composed), Compose{});
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int64_t count : Extents()) {
    const std::vector<int32_t> hx = Random(count);
    std::vector<uint8_t> hbytes;
    for (const int32_t v : hx) hbytes.push_back(static_cast<uint8_t>(v % 200 == 0 ? rng_() : 3));
    const std::vector<Affine> hmaps = Maps(count);
    const size_t size = hx.size();
    std::vector<int64_t> got(size), got_offsets(size), want(size), want_offsets(size);
    std::vector<uint8_t> got_most(size), want_most(size);
    std::vector<int32_t> got_least(size), want_least(size);
    std::vector<Affine> got_maps(size), want_maps(size);
    io.Set(n, static_cast<int32_t>(count)).Set(x, hx).Set(bytes, hbytes).Set(maps, hmaps).Set(sums, got);
    io.Set(offsets, got_offsets).Set(most, got_most).Set(least, got_least).Set(composed, got_maps);
    auto run = exec->Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    std::inclusive_scan(hx.begin(), hx.end(), want.begin(), std::plus<>(), int64_t{0});
    std::exclusive_scan(hx.begin(), hx.end(), want_offsets.begin(), int64_t{0});
    std::inclusive_scan(hbytes.begin(), hbytes.end(), want_most.begin(), Max());
    std::exclusive_scan(hx.begin(), hx.end(), want_least.begin(), std::numeric_limits<int32_t>::max(), Min());
    std::inclusive_scan(hmaps.begin(), hmaps.end(), want_maps.begin(), Compose{});
    EXPECT_EQ(got, want) << count;
    EXPECT_EQ(got_offsets, want_offsets) << count;
    EXPECT_EQ(got_most, want_most) << count;
    EXPECT_EQ(got_least, want_least) << count;
    EXPECT_TRUE(Same(got_maps, want_maps)) << count;
  }
}

// Rows of less than a chunk, of all powers of two, of several leaves; boxes, pitches and aliases; from a buffer to
// another and in place.
TEST_P(Scans, TakeEachRowAlone) {
  const struct {
    int64_t d, h, w, pitch;
  } kShapes[] = {{1, 40, 7, 7},      {1, 700, 1, 3},     {3, 50, 33, 40},    {20, 7, 130, 131},
                 {2, 3, 3000, 3001}, {5, 90, 3, 4},      {1, 3, 2048, 2050}, {1, 5, 2052, 2052},
                 {2, 9, 1024, 1024}, {1, 1, 9000, 9001}, {1, 300, 258, 258}};
  for (const auto& shape : kShapes) {
    const int64_t d = shape.d, h = shape.h, w = shape.w, pitch = shape.pitch;
    Graph g("rows");
    const PitchedExtent extent = d == 1 ? Pitched({h, w}, pitch) : Pitched({d, h, w}, pitch);
    auto x = g.InOut<float>("x", extent);
    const int64_t top = h / 8, rows = h - top, left = w / 3, columns = w - left;
    auto inner = d == 1 ? Slice({top, left}, {rows, columns}) : Slice({0, top, left}, {d, rows, columns});
    auto y = g.Output<float>("y", extent.extent), part = g.Output<float>("part", inner.size);
    auto dense = g.Buffer<float>("dense", extent.extent);
    g.Copy("copy", Read(x), Write(dense));
    Scan(g, "y", Read(x), Write(y), Plus(), kExclusive);
    Scan(g, "part", Read(g.Alias("alias", dense, inner)), Write(part));
    Scan(g, "x", Read(x, inner), Write(x, inner), Plus(), 2.5F);
    std::vector<float> values = RandomOf<float>(d * h * pitch), want = values, want_y, want_part;
    std::vector<float> got(static_cast<size_t>(d * h * w)), got_part(static_cast<size_t>(d * rows * columns));
    for (int64_t row = 0; row < d * h; ++row) {
      const std::span<const float> all = std::span<const float>(values).subspan(row * pitch, w);
      const std::span<const float> right = all.subspan(left);
      const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(want_y, Expected<float>(all, Plus(), 0.F, false));
      if (row % h < top) continue;
      append(want_part, Expected<float>(right, Plus(), std::nullopt, true));
      const std::vector<float> in_place = Expected<float>(right, Plus(), 2.5F, true);
      std::copy(in_place.begin(), in_place.end(), want.begin() + row * pitch + left);
    }
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(y, got).Set(part, got_part); }));
    EXPECT_TRUE(Same(got, want_y)) << d << " " << h << " " << w;
    EXPECT_TRUE(Same(got_part, want_part)) << d << " " << h << " " << w;
    EXPECT_TRUE(Same(values, want)) << d << " " << h << " " << w;
  }
}

// Operations that are exactly associative give the same in any order, and show if a pass mistakes a neighbour.
TEST_P(Scans, InOnePassLoseAndSwapNothing) {
  std::vector<std::pair<int64_t, int64_t>> shapes{{1, 2049}, {40, 30}, {3, 5000}, {7, 8192}, {2, 8193}, {1, 20'000}};
  if (GetParam().ring) shapes = {{1, 2049}, {40, 30}, {2, 8193}};
  else if (!GetParam().checked) shapes.emplace_back(1, 700'001);
  for (const auto& [h, w] : shapes) {
    Graph g("pass");
    const Extent extent{h, w};
    auto x = g.InOut<int32_t>("x", Pitched({h, w}, w + 3));
    auto maps = g.Input<Affine>("maps", extent), composed = g.Output<Affine>("composed", extent);
    auto wide = g.Input<Affine64>("wide", extent), composed64 = g.Output<Affine64>("composed 64", extent);
    auto sums = g.Output<int64_t>("sums", extent);
    auto whole = g.Input<float>("whole", extent), floats = g.Output<float>("floats", extent);
    Scan(g, "sums", Read(x), Write(sums), Plus(), 5, kExclusive);
    Scan(g, "floats", Read(whole), Write(floats), Plus(), kAnyOrder);
    Scan(g, "x", Read(x), Write(x), Min());
    Scan(g, "composed", Read(maps), Write(composed), Compose{}, kAnyOrder);
    Scan(g, "composed 64", Read(wide), Write(composed64), Compose64{}, Affine64{3, 4}, kAnyOrder);
    const auto n = static_cast<size_t>(h * w);
    std::vector<int32_t> hx(static_cast<size_t>(h * (w + 3)), 1), want_x;
    for (int32_t& v : hx) v = static_cast<int32_t>(rng_() % 23) - 11;
    want_x = hx;
    const std::vector<Affine> hmaps = Maps(h * w);
    std::vector<Affine64> hwide(n), got64(n), want64(n);
    for (Affine64& m : hwide) m = {rng_() | 1U, uint64_t{rng_()} << 32 | rng_()};
    std::vector<Affine> got_maps(n), want_maps(n);
    std::vector<int64_t> got(n), want(n);
    std::vector<float> hwhole(n), got_floats(n), want_floats(n);  // whole numbers, whose sums are below 2^24
    for (int64_t row = 0; row < h; ++row) {
      const int64_t at = row * w;
      const auto values = want_x.begin() + row * (w + 3);
      std::exclusive_scan(values, values + w, want.begin() + at, int64_t{5});
      std::copy(values, values + w, hwhole.begin() + at);
      std::inclusive_scan(values, values + w, want_floats.begin() + at);
      std::inclusive_scan(values, values + w, values, Min());
      std::inclusive_scan(hmaps.begin() + at, hmaps.begin() + at + w, want_maps.begin() + at, Compose{});
      std::inclusive_scan(hwide.begin() + at, hwide.begin() + at + w, want64.begin() + at, Compose64{}, Affine64{3, 4});
    }
    ASSERT_OK(RunOnce(g, [&](Bindings& io) {
      io.Set(x, hx).Set(maps, hmaps).Set(composed, got_maps).Set(wide, hwide).Set(composed64, got64);
      io.Set(sums, got).Set(whole, hwhole).Set(floats, got_floats);
    }));
    EXPECT_EQ(hx, want_x) << h << " " << w;
    EXPECT_EQ(got, want) << h << " " << w;
    EXPECT_TRUE(Same(got_floats, want_floats)) << h << " " << w;
    EXPECT_TRUE(Same(got_maps, want_maps)) << h << " " << w;
    EXPECT_TRUE(Same(got64, want64)) << h << " " << w;
  }
}

TEST_P(Scans, OfRowsWhoseExtentIsAParameter) {
  Graph g("parameters");
  auto d = g.Param<int32_t>("d", AtMost(3)), h = g.Param<int32_t>("h", AtMost(40));
  auto w = g.Param<int64_t>("w", AtMost(4100));
  auto x = g.Input<int32_t>("x", {d, h, w});
  auto y = g.Output<int64_t>("y", {d, h, w});
  Scan(g, "y", Read(x), Write(y), Plus(), 7);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const struct {
    int32_t d, h;
    int64_t w;
  } kShapes[] = {{3, 40, 33}, {1, 2, 4100}, {0, 3, 5}, {3, 0, 9}, {2, 2, 0}, {2, 3, 2048}, {1, 40, 2049}, {3, 1, 1}};
  for (const auto& shape : kShapes) {
    const std::vector<int32_t> hx = Random(shape.d * shape.h * shape.w);
    std::vector<int64_t> got(hx.size()), want(hx.size());
    for (int64_t row = 0; row < shape.d * shape.h; ++row) {
      const auto begin = hx.begin() + row * shape.w;
      std::inclusive_scan(begin, begin + shape.w, want.begin() + row * shape.w, std::plus<>(), int64_t{7});
    }
    auto run = exec->Launch(io.Set(d, shape.d).Set(h, shape.h).Set(w, shape.w).Set(x, hx).Set(y, got));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(got, want) << shape.d << " " << shape.h << " " << shape.w;
  }
}

TEST_P(Scans, OfTheFirstElementsThatTheDeviceCounts) {
  constexpr int64_t kN = 10'000;
  Graph g("counted");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  auto count = g.Input<int32_t>("count", 1);
  auto x = g.Input<float>("x", n);
  auto y = g.InOut<float>("y", n);
  Scan(g, "y", CountOf(count, n), Read(x), Write(y), Plus(), 1.F, kExclusive);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int64_t most : {kN, int64_t{1500}}) {
    for (const int32_t counted : {0, -5, 1, 2048, 2049, 4099, 9999, 20'000}) {
      const std::vector<float> hx = RandomOf<float>(most);
      const auto there = static_cast<size_t>(std::clamp<int64_t>(counted, 0, most));
      std::vector<float> got(hx.size(), -1.F), want = Expected<float>(std::span(hx).first(there), Plus(), 1.F, false);
      const std::vector<int32_t> hcount{counted};
      auto run = exec->Launch(io.Set(n, most).Set(count, hcount).Set(x, hx).Set(y, got));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      want.resize(hx.size(), -1.F);  // the rest keeps its value in memory that is bound
      EXPECT_TRUE(Same(got, want)) << counted << " of " << most;
    }
  }
}

TEST_P(Scans, StandInLoopsAndTakeStates) {
  auto state = runtime_->MakeState<uint32_t>("state", 5000);
  ASSERT_OK(state.status());
  std::vector<uint32_t> begin(5000);
  for (uint32_t& v : begin) v = static_cast<uint32_t>(rng_());
  ASSERT_OK(state->Set(begin));
  Graph g("loop");
  auto out = g.Output<uint32_t>("out", 5000);
  g.Use(*state);
  g.Repeat("repeat", 3, [&](Graph& body) { Scan(body, "again", Read(*state), Write(*state)); });
  Scan(g, "out", Read(*state), Write(out));
  std::vector<uint32_t> got(5000), want = begin;
  for (int i = 0; i < 4; ++i) std::inclusive_scan(want.begin(), want.end(), want.begin());
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(out, got); }));
  EXPECT_EQ(got, want);
}

TEST_P(Scans, AreFoundWhenDeclaredAgainAndCheckedAgainstHostCode) {
  GraphCache found(*runtime_), checked(*runtime_, {.compile = {.check_against_host = true}});
  for (int round = 0; round < 2; ++round) {
    for (const int64_t n : {int64_t{100}, int64_t{5000}}) {
      const std::vector<float> hx = RandomOf<float>(n);
      const std::vector<float> want = Expected<float>(hx, Plus(), static_cast<float>(round), false);
      const std::vector<uint32_t> ones(hx.size(), 1);
      std::vector<uint32_t> want_sums(hx.size());
      std::iota(want_sums.begin(), want_sums.end(), 1U);
      for (GraphCache* const cache : {&found, &checked}) {
        std::vector<float> got(hx.size());
        std::vector<uint32_t> got_sums(hx.size());
        absl::StatusOr<penstock::Run> run = cache->Launch([&](Graph& g, Bindings& io) {
          auto x = g.Input<float>("x", n);
          auto y = g.Output<float>("y", n);
          auto whole = g.Input<uint32_t>("whole", n), sums = g.Output<uint32_t>("sums", n);
          Scan(g, "y", Read(x), Write(y), Plus(), static_cast<float>(round), kExclusive);
          Scan(g, "sums", Read(whole), Write(sums));
          io.Set(x, hx).Set(y, got).Set(whole, ones).Set(sums, got_sums);
        });
        ASSERT_OK(run.status());
        ASSERT_OK(run->Wait());
        EXPECT_TRUE(Same(got, want)) << n;
        EXPECT_EQ(got_sums, want_sums) << n;
      }
    }
  }
  EXPECT_EQ(found.counts().compiled, 2);
  EXPECT_EQ(found.counts().found, 2);
}

TEST_P(Scans, HaveAsManyLevelsAsTheyNeed) {
  if (GetParam().ring || GetParam().checked) GTEST_SKIP() << "the other targets do the same arithmetic";
  constexpr int64_t kN = (int64_t{1} << 22) + 5000;
  Graph g("levels");
  auto x = g.Input<float>("x", kN);
  auto y = g.Output<float>("y", kN);
  Scan(g, "y", Read(x), Write(y));
  const std::vector<float> values = RandomOf<float>(kN);
  std::vector<float> got(values.size());
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(y, got); }));
  EXPECT_TRUE(Same(got, Expected<float>(values, Plus(), std::nullopt, true)));
}

TEST(ScansOnHostDevices, HaveTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 random(7);
  std::vector<float> values(100'001);
  for (float& v : values) v = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 24));
  const std::vector<float> want = Expected<float>(values, Plus(), std::nullopt, true);
  for (const int threads : {1, 2, 5}) {
    auto runtime = Runtime::Create({.devices = "host", .host_device_threads = threads});
    ASSERT_OK(runtime.status());
    Graph g("threads");
    auto x = g.Input<float>("x", 100'001);
    auto y = g.Output<float>("y", 100'001);
    Scan(g, "y", Read(x), Write(y));
    auto exec = runtime->Compile(g);
    ASSERT_OK(exec.status());
    std::vector<float> got(values.size());
    Bindings io = exec->bindings();
    auto run = exec->Launch(io.Set(x, values).Set(y, got));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_TRUE(Same(got, want)) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Scans, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Scans, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::scan_test

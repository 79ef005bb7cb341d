// Reduce and TransformReduce: the same bits on every driver as a tree that reduce_oracle.h writes down once more.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/conformance/graph/reduce_oracle.h"

namespace penstock::conformance::reduce_test {
namespace {

constexpr int64_t kMost = 1'000'003;

using reduce_oracle::AnyOf;
using reduce_oracle::Expected;
using reduce_oracle::Same;

struct Product {
  PENSTOCK_HOST_DEVICE float operator()(int64_t i, const float* p, const float* q) const { return p[i] * q[i]; }
};
// The greatest value and where it is; of equal ones the first that was on the left, whatever its index.
struct Best {
  double value;
  int64_t index;
};
struct BestOf {
  PENSTOCK_HOST_DEVICE Best operator()(const Best& a, const Best& b) const { return a.value < b.value ? b : a; }
};
struct WithIndex {
  PENSTOCK_HOST_DEVICE Best operator()(int64_t i, const int32_t* x) const { return {static_cast<double>(x[i]), i}; }
};
// x -> scale * x + shift, modulo 2^32. To compose is associative and not commutative. Three words are no power of two.
struct Affine {
  uint32_t scale, shift, maps;
};
struct Compose {
  PENSTOCK_HOST_DEVICE Affine operator()(const Affine& a, const Affine& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift, a.maps + b.maps};
  }
};
struct AffineAt {
  PENSTOCK_HOST_DEVICE Affine operator()(int64_t i, const int32_t* x) const {
    return {static_cast<uint32_t>(x[i]) * 2 + 1, static_cast<uint32_t>(i), 1};
  }
};

class Reduces : public GraphConformance {
 protected:
  template <class T>
  std::vector<T> RandomOf(int64_t n) {
    return AnyOf<T>(rng_, n);
  }
  // A chunk of the ring is small, and a checked driver does the same arithmetic.
  std::vector<int64_t> Extents() const {
    std::vector<int64_t> extents{0, 1, 2, 3, 31, 33, 257, 1000, 2047, 2048, 2049, 4096, 4097};
    if (!GetParam().ring && !GetParam().checked) extents.push_back(kMost);
    return extents;
  }
  template <class T>
  void SumsAreThoseOfTheTree();
  template <class T, class V>
  void ManyElementsAreThoseOfTheTree();
};

template <class T>
void Reduces::SumsAreThoseOfTheTree() {
  Graph g("sums");
  auto n = g.Param<int64_t>("n", AtMost(kMost));
  auto x = g.Input<T>("x", n);
  auto sum = g.Output<T>("sum", 1);
  g.Reduce("sum", Read(x), Write(sum));
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int64_t count : Extents()) {
    const std::vector<T> values = RandomOf<T>(count);
    T got[2] = {-1, -1};
    std::vector<penstock::Run> runs;
    for (T& to : got) {
      auto run = exec->Launch(io.Set(n, count).Set(x, values).Set(sum, std::span(&to, 1)));
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (penstock::Run& run : runs) ASSERT_OK(run.Wait());
    const T expected = Expected(values, std::plus<T>(), T{0});
    EXPECT_TRUE(Same(got[0], expected) && Same(got[1], expected)) << count << ": " << got[0] << " is not " << expected;
  }
}
TEST_P(Reduces, SumsOfFloatsAreThoseOfTheTree) { SumsAreThoseOfTheTree<float>(); }
TEST_P(Reduces, SumsOfDoublesAreThoseOfTheTree) { SumsAreThoseOfTheTree<double>(); }

TEST_P(Reduces, TakeNoPartForTheIdentity) {
  for (const int64_t n : {1, 2, 33, 2048, 2049}) {
    Graph g("zeros");
    auto x = g.Input<float>("x", n);
    auto sum = g.Output<float>("sum", 1), ten = g.Output<float>("ten", 1);
    g.Reduce("sum", Read(x), Write(sum));
    g.Reduce("ten", Read(x), Write(ten), Plus(), 10);
    const std::vector<float> zeros(static_cast<size_t>(n), -0.0F);
    float got = 1, other = 1;
    ASSERT_OK(RunOnce(
        g, [&](Bindings& io) { io.Set(x, zeros).Set(sum, std::span(&got, 1)).Set(ten, std::span(&other, 1)); }));
    EXPECT_TRUE(Same(got, -0.0F) && Same(other, -0.0F)) << n;
  }
}

TEST_P(Reduces, RoundEachProductBeforeItIsAdded) {
  for (const int64_t n : Extents()) {
    Graph g("dot");
    auto p = g.Input<float>("p", n), q = g.Input<float>("q", n);
    auto dot = g.Output<float>("dot", 1);
    g.TransformReduce("dot", n, Product{}, Plus(), 0, Read(p), Read(q), Write(dot));
    const std::vector<float> hp = RandomOf<float>(n), hq = RandomOf<float>(n);
    std::vector<float> products(hp.size());
    for (size_t i = 0; i < hp.size(); ++i) products[i] = hp[i] * hq[i];
    float got = -1;
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(p, hp).Set(q, hq).Set(dot, std::span(&got, 1)); }));
    EXPECT_TRUE(Same(got, Expected(products, std::plus<float>(), 0.F))) << n;
  }
}

TEST_P(Reduces, KeepTheOrderOfWhatDoesNotCommute) {
  Graph g("order");
  auto n = g.Param<int32_t>("n", AtMost(kMost));
  auto x = g.Input<int32_t>("x", n);
  auto map = g.Output<Affine>("map", 1);
  auto best = g.Output<Best>("best", 1);
  g.TransformReduce("compose", n, AffineAt{}, Compose{}, Affine{1, 0, 0}, Read(x), Write(map));
  g.TransformReduce("best", {n}, WithIndex{}, BestOf{}, Best{-1e300, -1}, Read(x), Write(best));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int64_t count : Extents()) {
    std::vector<int32_t> values = Random(count);
    for (int32_t& v : values) v /= 50'000;  // many are equal
    Affine got{};
    Best got_best{};
    io.Set(n, static_cast<int32_t>(count)).Set(x, values).Set(map, std::span(&got, 1));
    auto run = exec->Launch(io.Set(best, std::span(&got_best, 1)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    Affine expected{1, 0, 0};
    Best expected_best{-1e300, -1};
    for (int64_t i = 0; i < count; ++i) {
      expected = Compose{}(expected, AffineAt{}(i, values.data()));
      expected_best = BestOf{}(expected_best, WithIndex{}(i, values.data()));
    }
    EXPECT_TRUE(Same(got, expected)) << count;
    EXPECT_TRUE(Same(got_best, expected_best)) << count;
  }
}

// Leaves whose rows are shorter than, as long as, and longer than what a thread goes on by; and rows of one element.
TEST_P(Reduces, TakeBoxesRowByRow) {
  const struct {
    int64_t d, h, w, pitch;
  } kShapes[] = {{1, 40, 70, 70}, {1, 700, 5, 9}, {3, 50, 33, 40}, {20, 7, 31, 32}, {2, 3, 3000, 3001}, {5, 900, 3, 4}};
  for (const auto& shape : kShapes) {
    const int64_t d = shape.d, h = shape.h, w = shape.w, pitch = shape.pitch;
    Graph g("boxes");
    const PitchedExtent extent = d == 1 ? Pitched({h, w}, pitch) : Pitched({d, h, w}, pitch);
    auto x = g.Input<float>("x", extent);
    auto sums = g.Output<float>("sums", {2, 2});
    const auto at = [&](int64_t k) { return Write(sums, Slice({k / 2, k % 2}, {1, 1})); };
    const Box inner = d == 1 ? Slice({1, 1}, {h - 2, w - 2}) : Slice({1, 0, 1}, {d - 1, h, w - 2});
    const Box column = d == 1 ? Slice({0, 2}, {h, 1}) : Slice({0, 0, 2}, {d, h, 1});
    auto dense = g.Buffer<float>("dense", extent.extent);
    g.Copy("copy", Read(x), Write(dense));
    g.Reduce("all", Read(x), at(0));
    g.Reduce("inner", Read(x, inner), at(1));
    g.Reduce("column", Read(g.Alias("alias", dense, column)), at(2));
    g.Reduce("dense", Read(dense), at(3));
    const std::vector<float> values = RandomOf<float>(d * h * pitch);
    std::vector<float> all, of_inner, of_column, got(4, -1.F);
    for (int64_t z = 0; z < d; ++z) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t c = 0; c < w; ++c) {
          const float v = values[static_cast<size_t>((z * h + y) * pitch + c)];
          all.push_back(v);
          const bool in = c > 0 && c < w - 1 && (d == 1 ? y > 0 && y < h - 1 : z > 0);
          if (in) of_inner.push_back(v);
          if (c == 2) of_column.push_back(v);
        }
      }
    }
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(sums, got); }));
    const std::plus<float> plus;
    EXPECT_EQ(got, (std::vector<float>{Expected(all, plus, 0.F), Expected(of_inner, plus, 0.F),
                                       Expected(of_column, plus, 0.F), Expected(all, plus, 0.F)}))
        << d << " " << h << " " << w;
  }
}

struct Weighted2 {
  PENSTOCK_HOST_DEVICE int64_t operator()(Index2 i, View<const int32_t> x, int64_t by) const {
    return x(i.y, i.x) * (1000 * i.y + i.x + by);
  }
};
struct Weighted3 {
  PENSTOCK_HOST_DEVICE int64_t operator()(Index3 i, Views<const int32_t> parts, int32_t* seen, int64_t by) const {
    int64_t sum = 0;
    for (const View<const int32_t>& part : parts) sum += part(i.z, i.y, i.x);
    seen[(i.z * 41 + i.y) * 57 + i.x] += 1;
    return sum * (i.z * 10'000 + i.y * 100 + i.x + by);
  }
};

TEST_P(Reduces, CallTheFunctorOnceForEachIndexWithItsArguments) {
  Graph g("arguments");
  auto h = g.Param<int64_t>("h", AtMost(90)), by = g.Param<int64_t>("by");
  auto x = g.Input<int32_t>("x", {h, 57});
  auto a = g.Input<int32_t>("a", {3, 41, 57}), b = g.Input<int32_t>("b", {3, 41, 57});
  auto seen = g.InOut<int32_t>("seen", 3 * 41 * 57);
  auto sums = g.Output<int64_t>("sums", 2);
  g.TransformReduce("two", {h, 57}, Weighted2{}, Plus(), 0, Read(x), by, Write(sums, Slice({0}, {1})));
  g.TransformReduce("three", Extent(3, 41, 57), Weighted3{}, Plus(), 0, All(std::vector{Read(a), Read(b)}),
                    ReadWrite(seen), by, Write(sums, Slice({1}, {1})));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::vector<int32_t> ha = Random(3 * 41 * 57), hb = Random(3 * 41 * 57);
  for (const int64_t rows : {90, 1, 0, 36}) {
    const std::vector<int32_t> hx = Random(rows * 57);
    const int64_t add = rows + 5;
    std::vector<int32_t> calls(ha.size());
    std::vector<int64_t> got(2, -1), expected(2);
    for (int64_t i = 0; i < rows * 57; ++i) expected[0] += hx[i] * (1000 * (i / 57) + i % 57 + add);
    for (int64_t i = 0; i < 3 * 41 * 57; ++i) {
      const int64_t weight = i / (41 * 57) * 10'000 + i / 57 % 41 * 100 + i % 57 + add;
      expected[1] += (int64_t{ha[i]} + hb[i]) * weight;
    }
    io.Set(h, rows).Set(by, add).Set(x, hx).Set(a, ha).Set(b, hb).Set(seen, calls);
    auto run = exec->Launch(io.Set(sums, got));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(got, expected) << rows;
    EXPECT_EQ(calls, std::vector<int32_t>(calls.size(), 1)) << rows;
  }
}

TEST_P(Reduces, WriteTheResultToStatesSlotsAndOtherTypes) {
  constexpr int64_t kN = 5000;
  auto total = runtime_->MakeState<int64_t>("total", 3);
  ASSERT_OK(total.status());
  ASSERT_OK(total->Set(std::vector<int64_t>{7, 8, 9}));
  Graph g("results");
  auto k = g.Param<int64_t>("k");
  auto x = g.Input<int32_t>("x", kN);
  auto ends = g.InOut<double>("ends", {2, 3});
  g.Reduce("total", Read(x), Write(*total, Slice({1}, {1})));
  g.Reduce("least", Read(x), Write(ends, Slice({k, 2}, {1, 1})), Min());
  g.Reduce("greatest", Read(x), Write(ends, Slice({0, 0}, {1, 1})), Max());
  std::vector<int32_t> hx = Random(kN);
  hx[1234] = -2'000'000;
  hx[4321] = 2'000'000;
  std::vector<double> got{1, 2, 3, 4, 5, 6};
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(k, int64_t{1}).Set(x, hx).Set(ends, got); }));
  EXPECT_EQ(got, (std::vector<double>{2e6, 2, 3, 4, 5, -2e6}));
  std::vector<int64_t> of_state(3);
  ASSERT_OK(total->Read(of_state));
  int64_t sum = 0;
  for (const int32_t v : hx) sum += v;
  EXPECT_EQ(of_state, (std::vector<int64_t>{7, sum, 9}));

  Graph again("state");  // and reads one
  auto most = again.Output<int64_t>("most", 1), none = again.Output<int64_t>("none", 1);
  again.Reduce("most", Read(*total), Write(most), Max());
  again.Reduce("none", Read(*total, Slice({2}, {0})), Write(none), Max());
  int64_t greatest = 0, of_none = 0;
  ASSERT_OK(
      RunOnce(again, [&](Bindings& io) { io.Set(most, std::span(&greatest, 1)).Set(none, std::span(&of_none, 1)); }));
  EXPECT_EQ(greatest, std::max<int64_t>(sum, 9));
  EXPECT_EQ(of_none, std::numeric_limits<int64_t>::min());
}

TEST_P(Reduces, SeeEveryNaN) {
  Graph g("nan");
  auto x = g.Input<float>("x", 3000);
  auto ends = g.Output<float>("ends", 2);
  g.Reduce("least", Read(x), Write(ends, Slice({0}, {1})), Min());
  g.Reduce("greatest", Read(x), Write(ends, Slice({1}, {1})), Max());
  for (const size_t at : {0, 1, 31, 32, 2047, 2048, 2999}) {
    std::vector<float> values = RandomOf<float>(3000), got(2);
    values[at] = std::numeric_limits<float>::quiet_NaN();
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(ends, got); }));
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1])) << at;
  }
}

// Leaves that are longer than those of fewer elements, without a buffer to read.
struct Hashed {
  PENSTOCK_HOST_DEVICE float operator()(int64_t i) const {
    const auto bits = static_cast<uint32_t>(i) * 2654435761u;
    return static_cast<float>(static_cast<int32_t>(bits)) * static_cast<float>(1 << (bits & 15));
  }
};
TEST_P(Reduces, HaveAsManyLevelsAsTheyNeed) {
  if (GetParam().ring || GetParam().checked) GTEST_SKIP() << "the other targets do the same arithmetic";
  constexpr int64_t kN = (int64_t{1} << 22) + 5;
  Graph g("levels");
  auto sum = g.Output<float>("sum", 1);
  g.TransformReduce("sum", kN, Hashed{}, Plus(), 0, Write(sum));
  std::vector<float> values(static_cast<size_t>(kN));
  for (int64_t i = 0; i < kN; ++i) values[static_cast<size_t>(i)] = Hashed{}(i);
  float got = -1;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(sum, std::span(&got, 1)); }));
  EXPECT_TRUE(Same(got, Expected(values, std::plus<float>(), 0.F)));
}

struct Square {
  PENSTOCK_HOST_DEVICE uint64_t operator()(int64_t i) const {
    return static_cast<uint64_t>(i) * static_cast<uint64_t>(i);
  }
};
TEST_P(Reduces, HaveThreeLevels) {
  if (GetParam().ring || GetParam().checked) GTEST_SKIP() << "the other targets do the same arithmetic";
  constexpr uint64_t kN = (uint64_t{1} << 26) + 3;
  Graph g("levels");
  auto sum = g.Output<uint64_t>("sum", 1);
  g.TransformReduce("sum", static_cast<int64_t>(kN), Square{}, Plus(), 0, Write(sum));
  uint64_t got = 0;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(sum, std::span(&got, 1)); }));
  uint64_t want = 0;
  for (uint64_t i = 0; i < kN; ++i) want += i * i;
  EXPECT_EQ(got, want);
}

// Every other order and every other tree gives another result.
struct Mix {
  template <class V>
  PENSTOCK_HOST_DEVICE V operator()(V a, V b) const {
    return static_cast<V>(a * 33 + (b ^ b >> 3));
  }
};
template <class T, class V>
void Reduces::ManyElementsAreThoseOfTheTree() {
  constexpr int64_t kBegin = int64_t{1} << 22;
  const std::vector<V> all = [&] {
    std::vector<V> values(static_cast<size_t>(kBegin + 30'000));
    for (V& v : values) v = static_cast<V>(static_cast<T>(rng_()));
    return values;
  }();
  const std::vector<T> elements(all.begin(), all.end());
  constexpr int64_t kMore[] = {1, 8192 + 4096 + 2048 + 77, 2 * 8192};
  for (const int64_t first : {0, 1, 4}) {
    for (const int64_t more : kMore) {
      if (kSanitized && more != kMore[(first + 1) / 2]) continue;  // each of both once, since they take long
      Graph g("many");
      auto x = g.Input<T>("x", static_cast<int64_t>(all.size()));
      auto mixed = g.Output<V>("mixed", 1);
      g.Reduce("mixed", Read(x, Slice({first}, {kBegin + more})), Write(mixed), Mix{}, V{0});
      V got = 0;
      ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, elements).Set(mixed, std::span(&got, 1)); }));
      const auto begin = all.begin() + first;
      EXPECT_EQ(got, Expected(std::vector<V>(begin, begin + kBegin + more), Mix{}, V{0})) << first << " " << more;
    }
  }
}
TEST_P(Reduces, OfManyElementsAreThoseOfTheTree) {
  if (GetParam().ring || GetParam().checked) GTEST_SKIP() << "the other targets do the same arithmetic";
  ManyElementsAreThoseOfTheTree<uint32_t, uint32_t>();
  ManyElementsAreThoseOfTheTree<uint64_t, uint64_t>();
  ManyElementsAreThoseOfTheTree<uint16_t, uint32_t>();
  ManyElementsAreThoseOfTheTree<uint8_t, uint64_t>();
}

struct Shifted {
  PENSTOCK_HOST_DEVICE int64_t operator()(int64_t i, const int32_t* x, int64_t by) const { return x[i] ^ by; }
};
// Graphs then have the other instance of the code.
TEST_P(Reduces, GetParametersThatComeByReference) {
  constexpr int kSums = 20;
  constexpr int64_t kN = 2100;
  Graph g("by reference");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto sums = g.Output<int64_t>("sums", kSums, kPinned);
  std::vector<ParamHandle<int64_t>> by;
  for (int i = 0; i < kSums; ++i) {
    by.push_back(g.Param<int64_t>(Name("by", i)));
    g.TransformReduce(Name("sum", i), kN, Shifted{}, Plus(), 0, Read(x), by.back(), Write(sums, Slice({i}, {1})));
  }
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  auto hx = runtime_->MakeHostBuffer<int32_t>(kN);
  auto got = runtime_->MakeHostBuffer<int64_t>(kSums);
  ASSERT_TRUE(hx.ok() && got.ok());
  const std::vector<int32_t> values = Random(kN);
  std::copy(values.begin(), values.end(), hx->begin());
  Bindings io = exec->bindings();
  io.Set(x, *hx).Set(sums, *got);
  for (int64_t round = 0; round < 14; ++round) {
    std::vector<int64_t> expected(kSums);
    for (int i = 0; i < kSums; ++i) {
      io.Set(by[i], 100 * round + i);
      for (const int32_t v : *hx) expected[i] += v ^ (100 * round + i);
    }
    auto run = exec->Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    ASSERT_EQ(std::vector<int64_t>(got->begin(), got->end()), expected) << round;
  }
  EXPECT_EQ(exec->submission_report().refreshes > 0, in_graphs());
}

TEST_P(Reduces, AreFoundWhenDeclaredAgainWithNewValues) {
  GraphCache cache(*runtime_);
  for (int round = 0; round < 3; ++round) {
    for (const int64_t n : {int64_t{100}, int64_t{5000}}) {
      const std::vector<float> hx = RandomOf<float>(n);
      std::vector<float> got(2, -1);
      absl::StatusOr<penstock::Run> run = cache.Launch([&](Graph& g, Bindings& io) {
        auto x = g.Input<float>("x", n);
        auto sums = g.Output<float>("sums", 2);
        g.Reduce("sum", Read(x), Write(sums, Slice({0}, {1})));
        g.Reduce("none", Read(x, Slice({1}, {0})), Write(sums, Slice({1}, {1})), Plus(), static_cast<float>(round));
        io.Set(x, hx).Set(sums, got);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(got, (std::vector<float>{Expected(hx, std::plus<float>(), 0.F), static_cast<float>(round)}));
    }
  }
  EXPECT_EQ(cache.counts().compiled, 2);
  EXPECT_EQ(cache.counts().found, 4);
}

TEST_P(Reduces, AreCheckedAgainstTheirHostCodeLevelByLevel) {
  Graph g("checked");
  auto n = g.Param<int64_t>("n", AtMost(10'000));
  auto p = g.Input<float>("p", n), q = g.Input<float>("q", n);
  auto dot = g.Output<float>("dot", 1), sum = g.Output<float>("sum", 1);
  g.TransformReduce("dot", n, Product{}, Plus(), 0, Read(p), Read(q), Write(dot));
  g.Reduce("sum", Read(p), Write(sum));
  auto exec = runtime_->Compile(g, {.check_against_host = true});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int64_t count : {10'000, 0, 3000}) {
    const std::vector<float> hp = RandomOf<float>(count), hq = RandomOf<float>(count);
    float got = -1, got_sum = -1;
    io.Set(n, count).Set(p, hp).Set(q, hq).Set(dot, std::span(&got, 1));
    auto run = exec->Launch(io.Set(sum, std::span(&got_sum, 1)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_TRUE(Same(got_sum, Expected(hp, std::plus<float>(), 0.F)));
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Reduces, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Reduces, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::reduce_test

// Random graphs whose nodes, on devices and on the host, use boxes of bound buffers, States and Buffers of any pitch:
// the contents are those that plain loops make, whatever parts the library copies for them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::parts_test {
namespace {

constexpr int64_t kMostRows = 12, kColumns = 10;

// out = 3 * in + add
struct Mix {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, int32_t add, View<const int32_t> in, View<int32_t> out) const {
    out(i.y, i.x) = 3 * in(i.y, i.x) + add;
  }
};
struct Bump {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, int32_t add, View<int32_t> x) const { x(i.y, i.x) += add; }
};

struct Part {
  int64_t y, x, h, w;
  Box box() const { return Slice({y, x}, {h, w}); }
  bool Meets(const Part& other) const {
    return y < other.y + other.h && other.y < y + h && x < other.x + other.w && other.x < x + w;
  }
};

// A buffer of some rows, with its contents as plain loops make them.
struct Matrix {
  BufferHandle<int32_t> handle;
  int64_t rows = kMostRows, pitch = kColumns;
  bool bound = false;
  std::vector<int32_t> expected, memory;
  int32_t& At(int64_t y, int64_t x) { return expected[static_cast<size_t>(y * pitch + x)]; }
};

class Parts : public GraphConformance {
 protected:
  int64_t Below(int64_t n) { return static_cast<int64_t>(rng_() % static_cast<uint64_t>(n)); }
  Part RandomPart(int64_t h, int64_t w) { return {Below(kRows - h + 1), Below(kColumns - w + 1), h, w}; }

  void AddMatrices(Graph& g, const ParamHandle<int64_t>& rows) {
    for (int b = 0; b < 4; ++b) {
      Matrix m;
      m.bound = b < 3;
      m.pitch = kColumns + 2 * Below(2);
      const std::string name = "m" + std::to_string(b);
      const bool varies = b == 1;
      if (varies) m.rows = kRows;
      const Extent dense = varies ? Extent{rows, kColumns} : Extent{kMostRows, kColumns};
      const auto extent = Pitched(dense, m.pitch);
      m.handle = m.bound ? g.InOut<int32_t>(name, extent) : g.Buffer<int32_t>(name, extent);
      m.memory = Random(m.rows * m.pitch);
      m.expected = m.memory;
      matrices_.push_back(std::move(m));
    }
    Matrix& inside = matrices_.back();
    g.Fill("first", inside.handle, 5);
    std::fill(inside.expected.begin(), inside.expected.end(), 5);
  }

  void AddNode(Graph& g, int n) {
    const int64_t h = 1 + Below(5), w = 1 + Below(kColumns);
    const auto add = static_cast<int32_t>(Below(100));
    Matrix &from = matrices_[static_cast<size_t>(Below(4))], &to = matrices_[static_cast<size_t>(Below(4))];
    const Part read = RandomPart(h, w), written = RandomPart(h, w);
    const std::string name = "n" + std::to_string(n);
    const auto device = static_cast<int>(Below(static_cast<int64_t>(runtime_->devices().size())));
    const auto bump = [&](Matrix& m) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) m.At(written.y + y, written.x + x) += add;
      }
    };
    const int64_t kind = Below(8);
    if (kind == 0) {
      g.Fill(name, Write(to.handle, written.box()), add).On(device);
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) to.At(written.y + y, written.x + x) = add;
      }
    } else if (kind == 1) {
      g.Host(
          name,
          [add](View<int32_t> m) {
            for (int64_t y = 0; y < m.height; ++y) {
              for (int64_t x = 0; x < m.width; ++x) m(y, x) += add;
            }
          },
          ReadWrite(to.handle, written.box()));
      bump(to);
    } else if (kind == 2 || (&from == &to && read.Meets(written))) {
      g.ParallelFor(name, {h, w}, Bump{}, add, ReadWrite(to.handle, written.box())).On(device);
      bump(to);
    } else {
      const bool copies = kind == 3;
      if (copies) {
        g.Copy(name, Read(from.handle, read.box()), Write(to.handle, written.box()));
      } else {
        auto reads = Read(from.handle, read.box());
        if (kind % 2 == 0) reads = WithoutCopy(reads);
        g.ParallelFor(name, {h, w}, Mix{}, add, reads, Write(to.handle, written.box())).On(device);
      }
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) {
          const int32_t value = from.At(read.y + y, read.x + x);
          to.At(written.y + y, written.x + x) = copies ? value : 3 * value + add;
        }
      }
    }
  }

  static constexpr int64_t kRows = 9;  // in this run, of a buffer whose rows are a parameter
  std::vector<Matrix> matrices_;
};

TEST_P(Parts, OfRandomBuffersAreWhatAProgramMakesOfThem) {
  for (int program = 0; program < (kSanitized ? 10 : 60); ++program) {
    matrices_.clear();
    rng_.seed(static_cast<unsigned>(program + 1));
    Graph g("parts");
    const auto rows = g.Param<int64_t>("rows", AtMost(kMostRows));
    AddMatrices(g, rows);
    for (int n = 0; n < 12; ++n) AddNode(g, n);
    const absl::Status ran = RunOnce(g, [&](Bindings& io) {
      io.Set(rows, kRows);
      for (Matrix& m : matrices_) {
        if (m.bound) io.Set(m.handle, m.memory);
      }
    });
    ASSERT_OK(ran) << "program " << program;
    for (size_t b = 0; b < matrices_.size(); ++b) {
      if (!matrices_[b].bound) continue;
      ASSERT_EQ(matrices_[b].memory, matrices_[b].expected) << "m" << b << " of program " << program;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Parts, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Parts, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::parts_test

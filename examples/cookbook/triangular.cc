// Cookbook: a sparse triangular solve by levels (Anderson and Saad 1989): rows that need only rows of earlier levels
// are one node. There are many levels and few rows in each, so the nodes run resident.
//
// docs/howto/cookbook/triangular.md explains the program.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kRows = 3000, kEntries = 3;  // of each row, left of the diagonal, or fewer

// A lower triangular matrix in compressed rows; the diagonal is 2.
struct Matrix {
  std::vector<int32_t> begin = {0}, column;
  std::vector<double> value;
};

Matrix RandomMatrix() {
  Matrix m;
  uint32_t random = 1;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t e = 0; e < std::min(row, kEntries); ++e) {
      random = random * 1664525U + 1013904223U;
      m.column.push_back(static_cast<int32_t>(random / 65536 % row));
      m.value.push_back(random % 1000 / 1000.0 - 0.5);
    }
    m.begin.push_back(static_cast<int32_t>(m.column.size()));
  }
  return m;
}

// Groups the rows by level: a row comes one level after the latest row that it needs.
std::vector<std::vector<int32_t>> LevelsOf(const Matrix& m) {
  std::vector<std::vector<int32_t>> levels;
  std::vector<size_t> level(kRows);
  for (int32_t row = 0; row < kRows; ++row) {
    for (int32_t e = m.begin[row]; e < m.begin[row + 1]; ++e) level[row] = std::max(level[row], level[m.column[e]] + 1);
    if (level[row] >= levels.size()) levels.resize(level[row] + 1);
    levels[level[row]].push_back(row);
  }
  return levels;
}

struct SolveRow {
  int64_t first;  // of the level, in `order`
  PS_HOST_DEVICE static double Of(int32_t row, const int32_t* begin, const int32_t* column, const double* value,
                                  const double* b, const double* x) {
    double sum = b[row];
    for (int32_t e = begin[row]; e < begin[row + 1]; ++e) sum -= value[e] * x[column[e]];
    return sum / 2;
  }
  PS_HOST_DEVICE void operator()(int64_t i, const int32_t* order, const int32_t* begin, const int32_t* column,
                                 const double* value, const double* b, double* x) const {
    const int32_t row = order[first + i];
    x[row] = Of(row, begin, column, value, b, x);
  }
};

absl::Status Cookbook() {
  Matrix m = RandomMatrix();
  const std::vector<std::vector<int32_t>> levels = LevelsOf(m);
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  ps::Graph g("solve");
  const auto entries = static_cast<int64_t>(m.column.size());
  auto order = g.Input<int32_t>("order", kRows), begin = g.Input<int32_t>("begin", kRows + 1);
  auto column = g.Input<int32_t>("column", entries);
  auto value = g.Input<double>("value", entries), b = g.Input<double>("b", kRows);
  auto x = g.Output<double>("x", kRows);
  g.Fill("x", x, 0);
  int64_t first = 0;
  for (const std::vector<int32_t>& rows : levels) {
    const auto count = static_cast<int64_t>(rows.size());
    g.ParallelFor(ps::Name("from row", first), count, SolveRow{first}, ps::Read(order), ps::Read(begin),
                  ps::Read(column), ps::Read(value), ps::Read(b), ps::ReadWrite(x));
    first += count;
  }
  PS_ASSIGN_OR_RETURN(ps::Executable exec,
                      runtime.Compile(g, {.mode = ps::Mode::kGraph, .resident = ps::Resident::kOn}));

  std::vector<int32_t> rows;
  for (const std::vector<int32_t>& level : levels) rows.insert(rows.end(), level.begin(), level.end());
  std::vector<double> right(kRows), got(kRows), expected(kRows);
  for (int64_t i = 0; i < kRows; ++i) right[i] = static_cast<double>(i % 17);
  ps::Bindings io = exec.bindings();
  io.Set(order, rows).Set(begin, m.begin).Set(column, m.column).Set(value, m.value).Set(b, right).Set(x, got);
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));
  PS_RETURN_IF_ERROR(run.Wait());

  double wrong = 0;
  for (int32_t row = 0; row < kRows; ++row) {
    expected[row] = SolveRow::Of(row, m.begin.data(), m.column.data(), m.value.data(), right.data(), expected.data());
    wrong = std::max(wrong, std::fabs(got[row] - expected[row]));
  }
  std::printf("%d rows in %d levels, %s\n", static_cast<int>(kRows), static_cast<int>(levels.size()),
              exec.submission_report().regions > 0 ? "which run resident" : "each of which is launched");
  std::printf("the last element is %.6f\n", got.back());
  return wrong < 1e-9 ? absl::OkStatus() : absl::InternalError("the solution is wrong");
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

// Cookbook: PageRank (Brin and Page 1998), followed until it has converged, in one launch. The links are in compressed
// sparse rows, and what pages without links have goes to all pages alike.
//
// docs/howto/cookbook/pagerank.md explains the program.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int32_t kPages = 5000, kMostSteps = 200;
constexpr double kFollow = 0.85, kTolerance = 1e-9;

// What is on pages without links.
struct Stuck {
  PS_HOST_DEVICE double operator()(int64_t i, const int32_t* links, const double* rank) const {
    return links[i] > 0 ? 0 : rank[i];
  }
};
// The pages from[row[i]] to from[row[i + 1] - 1] have a link to page i, and each page has `links` of them.
struct Collect {
  PS_HOST_DEVICE void operator()(int64_t i, const int32_t* row, const int32_t* from, const int32_t* links,
                                 const double* stuck, const double* rank, double* next) const {
    double sum = *stuck / kPages;
    for (int32_t k = row[i]; k < row[i + 1]; ++k) sum += rank[from[k]] / links[from[k]];
    next[i] = (1 - kFollow) / kPages + kFollow * sum;
  }
};
struct Difference {
  PS_HOST_DEVICE double operator()(int64_t i, const double* a, const double* b) const { return fabs(a[i] - b[i]); }
};
struct IsAbove {
  PS_HOST_DEVICE bool operator()(double limit, const double* change) const { return *change > limit; }
};

struct Web {
  std::vector<int32_t> row{0}, from, links = std::vector<int32_t>(kPages);
};

// Some pages have many links to them, and every tenth has none to others.
Web MakeWeb() {
  Web web;
  std::mt19937 random(4711);
  for (int32_t page = 0; page < kPages; ++page) {
    for (uint32_t k = random() % 8 * (page % 100 == 7 ? 20 : 1); k > 0; --k) {
      web.from.push_back(static_cast<int32_t>(random() % kPages / 10 * 10 + 1 + k % 9));
      ++web.links[web.from.back()];
    }
    web.row.push_back(static_cast<int32_t>(web.from.size()));
  }
  return web;
}

// One step on the host, as if each page without links had links to all pages; and how much it changes.
double Step(const Web& web, std::vector<double>& rank) {
  std::vector<double> next(kPages, (1 - kFollow) / kPages);
  for (int32_t i = 0; i < kPages; ++i) {
    for (double& all : next) all += web.links[i] > 0 ? 0 : kFollow * rank[i] / kPages;
    for (int32_t k = web.row[i]; k < web.row[i + 1]; ++k) {
      next[i] += kFollow * rank[web.from[k]] / web.links[web.from[k]];
    }
  }
  double change = 0;
  for (int32_t i = 0; i < kPages; ++i) change += std::fabs(next[i] - rank[i]);
  rank.swap(next);
  return change;
}

absl::Status Cookbook() {
  const Web web = MakeWeb();
  ps::Graph g("pagerank");
  auto limit = g.Param<double>("limit");
  auto row = g.Input<int32_t>("row", kPages + 1), links = g.Input<int32_t>("links", kPages);
  auto from = g.Input<int32_t>("from", static_cast<int64_t>(web.from.size()));
  auto rank = g.Output<double>("rank", kPages);
  auto next = g.Buffer<double>("next", kPages), stuck = g.Buffer<double>("stuck", 1);
  auto change = g.Buffer<double>("change", 1);
  auto iterations = g.Output<int32_t>("iterations", 1);
  const auto step = [&](const std::string& name, ps::BufferHandle<double> is, ps::BufferHandle<double> becomes) {
    g.TransformReduce(name + "/stuck", kPages, Stuck{}, ps::Plus(), 0, ps::Read(links), ps::Read(is), ps::Write(stuck));
    g.ParallelFor(name + "/collect", kPages, Collect{}, ps::Read(row), ps::Read(from), ps::Read(links), ps::Read(stuck),
                  ps::Read(is), ps::Write(becomes));
  };
  g.Fill("begin", rank, 1.0 / kPages);
  g.Fill("go on", change, 1);
  const auto is_above = ps::When(IsAbove{}, limit, ps::Read(change)).Count(iterations);
  g.While("follow", is_above, {.max = kMostSteps / 2}, [&](ps::Graph& body) {
    step("there", rank, next);
    step("back", next, rank);
    body.TransformReduce("change", kPages, Difference{}, ps::Plus(), 0, ps::Read(next), ps::Read(rank),
                         ps::Write(change));
  });
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(g));

  std::vector<double> ranks(kPages), expected(kPages, 1.0 / kPages);
  int32_t count = 0, expected_count = 1;
  ps::Bindings io = exec.bindings();
  io.Set(limit, kTolerance).Set(row, web.row).Set(from, web.from).Set(links, web.links);
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(rank, ranks).Set(iterations, std::span(&count, 1))));
  PS_RETURN_IF_ERROR(run.Wait());
  std::printf("%d steps along %d links\n", 2 * count, static_cast<int>(web.from.size()));
  std::vector<int32_t> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  std::sort(pages.begin(), pages.end(), [&](int32_t a, int32_t b) { return ranks[a] > ranks[b]; });
  for (int top = 0; top < 3; ++top) std::printf("page %d has rank %.6f\n", pages[top], ranks[pages[top]]);

  for (Step(web, expected); Step(web, expected) > kTolerance; Step(web, expected)) ++expected_count;
  bool right = count == expected_count;
  for (int32_t i = 0; i < kPages; ++i) right &= std::fabs(ranks[i] - expected[i]) < 1e-14;
  return right ? absl::OkStatus() : absl::InternalError("the ranks are wrong");
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

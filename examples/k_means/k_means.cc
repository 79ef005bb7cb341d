// Clusters of points by Lloyd's algorithm (Least squares quantization in PCM, 1982), all of it in one launch: each
// point goes to the nearest centre, each centre to the mean of its points, until no point goes elsewhere. README.md
// explains it.
//
//   k_means [--devices cuda | host] [--points 200000] [--most 500]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int kClusters = 8;

struct Point {
  float x, y;
  bool operator==(const Point&) const = default;
};

// The square of the distance. A product of two floats is exact in a double, so the sum is rounded once, whether or not
// a compiler contracts it: the nearest centre is the same on every device.
PS_HOST_DEVICE inline double Apart(const Point& a, const Point& b) {
  const float dx = a.x - b.x, dy = a.y - b.y;
  return double{dx} * double{dx} + double{dy} * double{dy};
}

// Puts point i into its cluster, and returns 1 if that is another one than before.
struct Assign {
  PS_HOST_DEVICE int operator()(int64_t i, const Point* points, const Point* centres, int* clusters) const {
    int nearest = 0;
    for (int k = 1; k < kClusters; ++k) {
      if (Apart(points[i], centres[k]) < Apart(points[i], centres[nearest])) nearest = k;
    }
    const int changed = clusters[i] == nearest ? 0 : 1;
    clusters[i] = nearest;
    return changed;
  }
};

// The sum of some points, and how many they are.
struct Sum {
  double x = 0, y = 0;
  int64_t points = 0;
  PS_HOST_DEVICE Sum operator+(const Sum& other) const { return {x + other.x, y + other.y, points + other.points}; }
  bool operator==(const Sum&) const = default;
};
// What point i adds to the sum of a cluster.
struct PartOf {
  int cluster;
  PS_HOST_DEVICE Sum operator()(int64_t i, const Point* points, const int* clusters) const {
    if (clusters[i] != cluster) return Sum();
    return {double{points[i].x}, double{points[i].y}, 1};
  }
};
// The mean. A centre without points stays where it is.
struct Move {
  PS_HOST_DEVICE void operator()(int64_t k, const Sum* sums, Point* centres) const {
    const auto points = static_cast<double>(sums[k].points);
    if (sums[k].points > 0)
      centres[k] = {static_cast<float>(sums[k].x / points), static_cast<float>(sums[k].y / points)};
  }
};
struct IsAny {
  PS_HOST_DEVICE bool operator()(const int* changed) const { return *changed > 0; }
};

struct Options {
  std::string devices;
  int64_t points = 200'000;
  int most = 500;
};
struct Result {
  std::vector<Point> centres;
  std::vector<Sum> sums = std::vector<Sum>(kClusters);
  std::vector<int> clusters;
  int rounds = 0;
  bool operator==(const Result&) const = default;
};

// Points around eight places on a circle, so wide that neighbours overlap. All coordinates are multiples of 2^-16, so
// that doubles hold their sums exactly, and the check may add them in another order. Other points give the same bits on
// all devices too, but not those of a plain loop.
std::vector<Point> MakePoints(int64_t n) {
  constexpr Point kPlaces[] = {{6, 0},  {4.25f, 4.25f},   {0, 6},  {-4.25f, 4.25f},
                               {-6, 0}, {-4.25f, -4.25f}, {0, -6}, {4.25f, -4.25f}};
  uint64_t state = 2026;
  const auto draw = [&] {  // a multiple of 2^-16 from -2 to 2, rarely near the ends: the sum of four
    int64_t sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += static_cast<int64_t>(state >> 48) - 32768;
    }
    return static_cast<float>(sum) / 65536;
  };
  std::vector<Point> points(static_cast<size_t>(n));
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& place = kPlaces[i * i % 31 % kClusters];  // not all equally often
    points[i] = {place.x + 2 * draw(), place.y + 2 * draw()};
  }
  return points;
}

// The same by plain loops, to check the result.
double Square(double x) { return x * x; }
Result Expected(const std::vector<Point>& points, const std::vector<Point>& centres, int most) {
  Result r{.centres = centres, .clusters = std::vector<int>(points.size(), -1)};
  for (bool changed = true; changed && r.rounds < most; ++r.rounds) {
    changed = false;
    r.sums.assign(kClusters, Sum());
    for (size_t i = 0; i < points.size(); ++i) {
      const Point& p = points[i];
      const auto nearer = [&p](const Point& a, const Point& b) {
        return Square(p.x - a.x) + Square(p.y - a.y) < Square(p.x - b.x) + Square(p.y - b.y);
      };
      const auto nearest = std::min_element(r.centres.begin(), r.centres.end(), nearer) - r.centres.begin();
      changed = changed || nearest != r.clusters[i];
      r.clusters[i] = static_cast<int>(nearest);
      r.sums[nearest].x += double{p.x};
      r.sums[nearest].y += double{p.y};
      ++r.sums[nearest].points;
    }
    for (size_t k = 0; k < r.centres.size(); ++k) {
      const Sum& sum = r.sums[k];
      const auto mean = [&sum](double x) { return static_cast<float>(x / static_cast<double>(sum.points)); };
      if (sum.points > 0) r.centres[k] = {mean(sum.x), mean(sum.y)};
    }
  }
  return r;
}

absl::Status Run(const Options& options) {
  const int64_t n = options.points;
  ps::Graph graph("k-means");
  auto points = graph.Input<Point>("points", n);
  auto centres = graph.InOut<Point>("centres", kClusters);
  auto sums = graph.Output<Sum>("sums", kClusters);
  auto clusters = graph.Output<int>("clusters", n);
  auto rounds = graph.Output<int>("rounds", 1);
  auto changed = graph.Buffer<int>("changed", 1);
  graph.Fill("no cluster", clusters, -1);
  graph.Fill("begin", changed, 1);
  const auto is_any = ps::When(IsAny{}, ps::Read(changed)).Count(rounds);
  graph.While("lloyd", is_any, {.max = options.most, .expected = 100}, [&](ps::Graph& body) {
    body.TransformReduce("assign", n, Assign{}, ps::Plus(), 0, ps::Read(points), ps::Read(centres),
                         ps::ReadWrite(clusters), ps::Write(changed));
    for (int k = 0; k < kClusters; ++k) {
      body.TransformReduce(ps::Name("sum", k), n, PartOf{k}, ps::Plus(), Sum(), ps::Read(points), ps::Read(clusters),
                           ps::Write(sums, ps::Slice({k}, {1})));
    }
    body.ParallelFor("move", kClusters, Move{}, ps::Read(sums), ps::ReadWrite(centres));
  });
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = options.devices}));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));

  const std::vector<Point> data = MakePoints(n);
  const std::vector<Point> first(data.begin(), data.begin() + kClusters);
  Result found{.centres = first, .clusters = std::vector<int>(data.size())};
  ps::Bindings io = exec.bindings();
  io.Set(points, data).Set(centres, found.centres).Set(sums, found.sums);
  io.Set(clusters, found.clusters).Set(rounds, found.rounds);
  PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(io));
  PS_RETURN_IF_ERROR(run.Wait());

  for (int k = 0; k < kClusters; ++k) {
    std::printf("cluster %d: %6lld points around (%7.4f, %7.4f)\n", k, static_cast<long long>(found.sums[k].points),
                double{found.centres[k].x}, double{found.centres[k].y});
  }
  if (found != Expected(data, first, options.most)) return absl::InternalError("the clusters are wrong");
  std::printf("%lld points, %d rounds: all as the host finds them\n", static_cast<long long>(n), found.rounds);
  return absl::OkStatus();
}

absl::Status Misused(const std::string& what) {
  return absl::InvalidArgumentError(what + "; usage: k_means [--devices cuda | host] [--points 200000] [--most 500]");
}

absl::Status Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--devices") options.devices = argv[i + 1];
    else if (flag == "--points") options.points = std::atoll(argv[i + 1]);
    else if (flag == "--most") options.most = std::atoi(argv[i + 1]);
    else return Misused("there is no " + flag);
  }
  if (argc % 2 == 0) return Misused(std::string(argv[argc - 1]) + " lacks a value");
  if (options.points < kClusters || options.points > 10'000'000 || options.most < 1)
    return absl::InvalidArgumentError("give 8 to 10000000 points, and one round or more");
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  Options options;
  absl::Status status = Parse(argc, argv, options);
  if (status.ok()) status = Run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

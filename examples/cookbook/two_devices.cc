// Cookbook: two devices that work on one problem. Heat spreads along a rod; each device has one half of it, and after
// each step they exchange the cells at the cut.
//
// docs/howto/cookbook/two_devices.md explains the program. PENSTOCK_DEVICES=host:2 runs it on two host devices; if
// there is only one device, it has both halves.
#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kHalf = 5000;  // cells of each half; one more at each end belongs to the neighbour or is fixed
constexpr int kLaunches = 50;  // of two steps each

struct Spread {
  PS_HOST_DEVICE void operator()(int64_t i, const float* from, float* to) const {
    to[i] = from[i + 1] + 0.25f * (from[i] - 2 * from[i + 1] + from[i + 2]);  // `from` begins one cell before `to`
  }
};

// The same on the host, for the rod as a whole.
std::vector<float> Expected(std::vector<float> rod) {
  std::vector<float> next = rod;
  for (int step = 0; step < 2 * kLaunches; ++step, std::swap(rod, next)) {
    for (size_t i = 1; i + 1 < rod.size(); ++i) next[i] = rod[i] + 0.25f * (rod[i - 1] - 2 * rod[i] + rod[i + 1]);
  }
  return rod;
}

absl::Status Cookbook() {
  std::vector<float> rod(2 * kHalf + 2, 0.f), part(kHalf + 2);
  for (int64_t i = kHalf - 300; i < kHalf + 5; ++i) rod[i] = 1024;  // so heat crosses the cut
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  const std::array<int, 2> device = {0, runtime.devices().size() > 1 ? 1 : 0};

  // u[t][h] is half h; a step goes from one t to the other.
  std::array<std::array<ps::State<float>, 2>, 2> u;
  for (int t : {0, 1}) {
    for (int h : {0, 1}) {
      const std::span<const float> initial(&rod[h * kHalf], kHalf + 2);
      PS_ASSIGN_OR_RETURN(u[t][h],
                          runtime.MakeState<float>(ps::Name("u", t, h), kHalf + 2, initial, {.device = device[h]}));
    }
  }

  ps::Graph graph("heat");
  for (int step : {0, 1}) {
    const auto& [left, right] = u[1 - step];
    const auto scope = graph.Scope(ps::Name("step", step));
    for (int h : {0, 1}) {
      graph
          .ParallelFor(ps::Name("spread", h), kHalf, Spread{}, ps::Read(u[step][h]),
                       ps::Write(u[1 - step][h], ps::Slice(1, kHalf)))
          .On(device[h]);
    }
    graph.Copy("to the right", ps::Read(left, ps::Slice(kHalf, 1)), ps::Write(right, ps::Slice(0, 1))).On(device[1]);
    graph.Copy("to the left", ps::Read(right, ps::Slice(1, 1)), ps::Write(left, ps::Slice(kHalf + 1, 1))).On(device[0]);
  }
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  for (int launch = 0; launch < kLaunches; ++launch) PS_RETURN_IF_ERROR(exec.Launch().status());

  const std::vector<float> expected = Expected(rod);
  for (int h : {0, 1}) {
    PS_RETURN_IF_ERROR(u[0][h].Read(part));
    for (int64_t i = 1; i <= kHalf; ++i) {
      if (part[i] != expected[h * kHalf + i]) return absl::InternalError("cell " + std::to_string(i) + " is wrong");
    }
  }
  std::printf("%d steps, both halves are right\n", 2 * kLaunches);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

// What every conformance test of the whole library starts from: a runtime on the devices and in the mode under test.
//
// A test program is compiled by nvcc where CUDA is built, by the C++ compiler where not; the tests are the same. A
// driver that is not there skips its tests with the reason, or fails them under PENSTOCK_REQUIRE_GPU=1.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/runtime.h"
#include "penstock/status_macros.h"
#include "tests/conformance/checked_runtimes.h"
#include "tests/support/environment.h"
#include "tests/support/mode_scope.h"
#include "tests/support/sanitized.h"
#include "tests/support/status.h"

#if defined(__CUDACC__)
#define TEST_KERNEL __global__
#else
#define TEST_KERNEL
#endif

namespace penstock::conformance {

struct Target {
  std::string devices;  // RuntimeOptions::devices
  std::string mode;     // "stream" or "graph": what executables are compiled for
  bool checked = false;  // behind checked drivers: no test may break a rule or leave anything alive
  uint64_t order_seed = 0;  // of host devices: other than 0, work runs in an order of that seed
  bool ring = false;  // whatever is not pinned goes through the ring, in chunks of 64 bytes
  bool resident = false;  // small nodes of graphs run in regions
};

inline std::ostream& operator<<(std::ostream& out, const Target& t) {
  return out << t.devices << " " << t.mode << (t.checked ? " checked " : " ") << t.order_seed << (t.ring ? " ring" : "")
             << (t.resident ? " resident" : "");
}

// Sanitized, a target of each kind: others take other turns through the same code.
inline std::vector<Target> HostTargets() {
  if (kSanitized) {
    return {{"host:3", "stream"},
            {"host:2", "stream", false, 0, true},
            {"host:3", "stream", true, 1},
            {"host:1", "graph"},
            {"host:2", "graph", true, 3, true, true}};
  }
  return {{"host:1", "stream"},
          {"host:3", "stream"},
          {"host:1", "stream", true},
          {"host:3", "stream", true, 1},
          {"host:3", "stream", true, 2},
          {"host:2", "stream", false, 0, true},
          {"host:3", "stream", true, 3, true},
          {"host:1", "graph"},
          {"host:3", "graph", true, 1, false, true},
          {"host:2", "graph", true, 3, true}};
}
// Of tests whose promise is what a graph computes or declares, which the other targets do alike: sanitized, two of the
// five, and not the same two under each sanitizer. What threads promise has all five, and ./run test has all of all.
inline std::vector<Target> HostTargetsOfResults() {
  if (kThreadSanitized) return {{"host:2", "stream", false, 0, true}, {"host:1", "graph"}};
  if (kSanitized) return {{"host:3", "stream"}, {"host:2", "graph", true, 3, true}};
  return HostTargets();
}
inline std::vector<Target> CudaTargets() {
  return {{"cuda", "stream"},
          {"cuda", "stream", true},
          {"cuda", "stream", false, 0, true},
          {"cuda", "stream", true, 0, true},
          {"cuda", "graph"},
          {"cuda", "graph", true},
          {"cuda", "graph", true, 0, true},
          {"cuda", "graph", false, 0, false, true},
          {"cuda", "graph", true, 0, false, true}};
}
inline std::string NameOfTarget(const testing::TestParamInfo<Target>& info) {
  const Target& t = info.param;
  std::string name = t.devices + "_" + t.mode + (t.checked ? "_checked" : "") + (t.ring ? "_ring" : "") +
                     (t.resident ? "_resident" : "");
  if (t.order_seed != 0) name += "_order" + std::to_string(t.order_seed);
  for (char& c : name) c = c == ':' ? '_' : c;
  return name;
}

class GraphConformance : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    absl::StatusOr<Runtime> made = MakeRuntime();
    if (made.ok()) {
      runtime_.emplace(*std::move(made));
      return;
    }
    if (RequiredDevices() >= 1) FAIL() << made.status();
    GTEST_SKIP() << made.status();
  }

  void TearDown() override {
    runtime_.reset();
    EXPECT_EQ(checks_ ? checks_->Complaints() : "", "");
  }

  absl::StatusOr<Runtime> MakeRuntime() {
    RuntimeOptions options{.devices = GetParam().devices, .workers = 2};
    if (GetParam().ring) options.staging = {.threads = 2, .chunk_bytes = 64, .from_bytes = 0};
    if (!GetParam().checked && GetParam().order_seed == 0) return CreateUncheckedRuntime(options);
    checks_.emplace();
    return checks_->CreateRuntime(options, GetParam().order_seed);
  }

  // Compiles, launches once and waits.
  template <class Bind>
  absl::Status RunOnce(const Graph& graph, Bind bind, CompileOptions options = {}) {
    PENSTOCK_ASSIGN_OR_RETURN(Executable exec, runtime_->Compile(graph, std::move(options)));
    Bindings io = exec.bindings();
    bind(io);
    PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run, exec.Launch(io));
    return run.Wait();
  }

  std::vector<int32_t> Random(int64_t n) {
    std::vector<int32_t> out(static_cast<size_t>(n));
    for (int32_t& v : out) v = static_cast<int32_t>(rng_() % 2000001) - 1000000;
    return out;
  }
  // Memory a test expects to be overwritten whole.
  static std::vector<int32_t> Poisoned(int64_t n) { return std::vector<int32_t>(static_cast<size_t>(n), 0x5a5a5a5a); }

  bool on_cuda() const { return runtime_->devices()[0].is_cuda; }

  bool in_graphs() const { return GetParam().mode == "graph"; }

  const ModeScope mode_{GetParam().mode};
  const EnvironmentScope resident_{"PENSTOCK_RESIDENT", GetParam().resident ? "on" : ""};
  std::mt19937 rng_{20260901};
  std::optional<CheckedRuntimes> checks_;
  std::optional<Runtime> runtime_;
};

}  // namespace penstock::conformance

// Stamps: kernels that write down the device's time.
#include "src/driver/timestamp.h"

#include <array>

#include "tests/conformance/driver/driver_conformance.h"

namespace penstock::driver::conformance::timestamp_conformance_test {
namespace {

// Stamps of device 0, each at a place of its own.
class Stamps {
 public:
  Stamps(Driver& driver, uint64_t* places) : places_(places) {
    const absl::StatusOr<LibraryCode> code = driver.LoadTimestamp(0);
    EXPECT_OK(code.status());
    for (size_t i = 0; i < kCount; ++i) {
      places_[i] = 0;
      args_[i].at = places_ + i;
      argv_[i] = &args_[i];
      if (code.ok()) ops_[i] = LibraryOp(*code, &argv_[i], sizeof(args_[i]));
    }
  }
  static constexpr size_t kCount = 4;
  const KernelOp& op(size_t i) const { return ops_[i]; }
  uint64_t at(size_t i) const { return places_[i]; }

 private:
  uint64_t* const places_;
  std::array<TimestampArgs, kCount> args_{};
  std::array<void*, kCount> argv_{};
  std::array<KernelOp, kCount> ops_{};
};

TEST_P(DriverConformance, StampsOfAStreamTellWhatWasBetweenThem) {
  const Stamps timestamps(*driver_, Pinned<uint64_t>(Stamps::kCount));
  const Event before = NewEvent(0, true), behind = NewEvent(0, true);
  KernelLatch& latch = NewLatch();
  ASSERT_OK(driver_->Record(before, stream_));
  ASSERT_OK(driver_->Launch(stream_, timestamps.op(0)));
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Launch(stream_, timestamps.op(1)));
  ASSERT_OK(driver_->Record(behind, stream_));
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_NE(timestamps.at(0), 0u);
  ASSERT_GT(timestamps.at(1), timestamps.at(0)) << "a kernel waited for this thread between them";
  const absl::StatusOr<double> around = driver_->Elapsed(before, behind);
  ASSERT_OK(around.status());
  constexpr double kResolution = 10;  // of both clocks, microseconds
  EXPECT_LE(static_cast<double>(timestamps.at(1) - timestamps.at(0)) / 1000, *around + kResolution) << "nanoseconds";
  EXPECT_EQ(timestamps.at(2), 0u) << "launched by nobody";
}

TEST_P(DriverConformance, StampsOfAGraphAreWrittenByEachLaunchInItsOrder) {
  const Stamps timestamps(*driver_, Pinned<uint64_t>(Stamps::kCount));
  int32_t* const data = Device<int32_t>(1000);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4000}));
  PackedArgs args;
  args.Add(data).Add(int64_t{1000}).Add(int32_t{1});
  const KernelOp step = OpOf(probes().step, args, 1000);
  const Graph graph = NewGraph();
  int32_t last = -1;
  for (const KernelOp* const op : {&timestamps.op(0), &step, &timestamps.op(1), &step, &timestamps.op(2)}) {
    const std::vector<int32_t> after = last < 0 ? std::vector<int32_t>{} : std::vector<int32_t>{last};
    const absl::StatusOr<int32_t> node = driver_->AddNode(graph, after, op, {});
    ASSERT_OK(node.status());
    last = *node;
  }
  const GraphExec exec = NewExec(graph);
  uint64_t end_before = 1;
  for (int launch = 0; launch < 3; ++launch) {
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    EXPECT_GE(timestamps.at(0), end_before) << launch;
    EXPECT_GE(timestamps.at(1), timestamps.at(0)) << launch;
    EXPECT_GE(timestamps.at(2), timestamps.at(1)) << launch;
    end_before = timestamps.at(2);
  }
}

}  // namespace
}  // namespace penstock::driver::conformance::timestamp_conformance_test

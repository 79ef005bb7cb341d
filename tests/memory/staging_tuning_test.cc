// The ring's threads and chunks, from given rates and from measured ones.
#include "src/memory/staging_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "src/driver/checked/checked_driver.h"
#include "src/driver/host/host_driver.h"

namespace penstock::memory::staging_tuning_test {
namespace {

TEST(StagingTuning, ThreadsKeepUpWithTheLinkAndLeaveCores) {
  const StagingRates rates{.fill = 10e3, .empty = 20e3, .up = 50e3, .down = 50e3, .copy_overhead = 3};
  EXPECT_EQ(TuneStaging(rates, 100).threads, 7 + 4 + 1);  // ceil(1.3 * 5), ceil(1.3 * 2.5), one that feeds
  EXPECT_EQ(TuneStaging(rates, 6).threads, 6);
  EXPECT_EQ(TuneStaging(rates, 0).threads, 1);
}

TEST(StagingTuning, ChunksAreSoLargeThatPausesBetweenThemCostLittle) {
  StagingRates rates{.fill = 10e3, .empty = 20e3, .up = 50e3, .down = 55e3, .copy_overhead = 3.2};
  EXPECT_EQ(TuneStaging(rates, 8).chunk_bytes, size_t{2} << 20);  // 3.2 us * 55 GB/s / 0.1 = 1.76 MB
  EXPECT_EQ(TuneStaging(rates, 8).block_bytes, size_t{4} << 20);
  rates.copy_overhead = 0;
  EXPECT_EQ(TuneStaging(rates, 8).chunk_bytes, size_t{256} << 10);
  rates.copy_overhead = 1e6;
  EXPECT_EQ(TuneStaging(rates, 8).block_bytes, size_t{16} << 20);
}

TEST(StagingTuning, MeasuresAnyDriverAndLeavesNothing) {
  const auto witness = std::make_shared<driver::checked::CallRecorder>();
  {
    auto host = driver::host::CreateHostDriver({});
    ASSERT_TRUE(host.ok()) << host.status();
    const auto driver = driver::checked::CreateCheckedDriver(*std::move(host), witness);
    const auto pool = PinnedPool::Create(*driver, {});
    const auto rates = MeasureStaging(*driver, *pool, 0);
    ASSERT_TRUE(rates.ok()) << rates.status();
    for (const double rate : {rates->fill, rates->empty, rates->up, rates->down}) EXPECT_GT(rate, 0);
    EXPECT_GE(rates->copy_overhead, 0);
    EXPECT_THAT(TextOf(*rates, TuneStaging(*rates, 4)), testing::HasSubstr("threads, chunks of "));
  }
  EXPECT_EQ(witness->violations(), std::vector<std::string>());
  EXPECT_EQ(witness->gauges(), driver::checked::Gauges());
}

}  // namespace
}  // namespace penstock::memory::staging_tuning_test

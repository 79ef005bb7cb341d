// The fuzzer's corpus, and random inputs, through what the fuzzer does with each: in every preset.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/check_bytes.h"

namespace penstock::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint32_t kFirstSeed = 1;
constexpr int kRandomInputs = 2000;
constexpr size_t kMostBytes = 300;

Bytes ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

Bytes RandomBytes(uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(random() % kMostBytes);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(random() >> 13); });
  return bytes;
}

TEST(FuzzedGraphs, OfTheCorpusAreRefusedOrRight) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PENSTOCK_FUZZ_CORPUS)) {
    EXPECT_EQ(CheckBytes(ReadFile(entry.path())).problem, "") << entry.path();
    ++files;
  }
  EXPECT_GT(files, 20) << "in " << PENSTOCK_FUZZ_CORPUS;
}

TEST(FuzzedGraphs, OfRandomBytesAreRefusedOrRight) {
  int accepted = 0, ran = 0;
  for (uint32_t seed = kFirstSeed; seed < kFirstSeed + kRandomInputs; ++seed) {
    const Outcome outcome = CheckBytes(RandomBytes(seed));
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
    accepted += outcome.accepted;
    ran += outcome.ran;
  }
  std::cout << kRandomInputs << " inputs: " << accepted << " planned, " << ran << " compiled\n";
  EXPECT_GT(accepted, kRandomInputs / 10);
  EXPECT_GT(kRandomInputs - accepted, kRandomInputs / 10);
  EXPECT_GT(ran, kRandomInputs / 10);
}

}  // namespace
}  // namespace penstock::fuzz

// The fuzzer's corpus, mutants of it, and random inputs, through what the fuzzer does with each: in every preset.
// Always the same inputs, so that a change passes or fails by itself; ./run fuzz goes where coverage leads.
// Programs run in the mode that the input draws, whatever PENSTOCK_MODE says.
// PENSTOCK_FUZZ_MUTANTS sets how many mutants, PENSTOCK_FUZZ_SEED the first: those of a failure to see it alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/check_algorithm_bytes.h"
#include "tests/fuzz/check_bytes.h"
#include "tests/fuzz/check_control_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/mode_scope.h"
#include "tests/support/sanitized.h"

namespace penstock::fuzz::corpus_test {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint32_t kFirstSeed = 1;
constexpr int kRandomInputs = 2000, kConstructs = kSanitized ? 100 : 400;
constexpr int kAlgorithms = kSanitized ? 100 : 400;
constexpr int kMutants = kSanitized ? 4000 : 20'000, kShards = 4;
constexpr size_t kMostBytes = 300, kMostMutated = 400;

Bytes ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

// In the order of their names.
std::vector<std::filesystem::path> CorpusFiles(const char* folder = PENSTOCK_FUZZ_CORPUS) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// A copy with a few bytes set, put in, left out or repeated, and now and then another's end.
Bytes Mutant(const std::vector<Bytes>& corpus, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<std::ptrdiff_t>(random() % n); };
  const auto odd = [&] {
    constexpr uint8_t kOdd[] = {0, 1, 0x7f, 0x80, 0xff};
    return random() % 2 == 0 ? kOdd[random() % 5] : static_cast<uint8_t>(random() >> 13);
  };
  Bytes bytes = corpus[random() % corpus.size()];
  for (auto left = 1 + random() % 6; left > 0; --left) {
    const auto at = bytes.begin() + below(bytes.size() + 1);
    const Bytes rest(at, bytes.end());
    const auto some = rest.begin() + below(std::min<size_t>(rest.size(), 8) + 1);
    switch (random() % 5) {
      case 0: bytes.insert(at, odd()); break;
      case 1: bytes.erase(at, at + (some - rest.begin())); break;
      case 2: bytes.insert(bytes.begin() + below(bytes.size() + 1), rest.begin(), some); break;
      case 3: {
        const Bytes& other = corpus[random() % corpus.size()];
        bytes.erase(at, bytes.end());
        bytes.insert(bytes.end(), other.begin() + below(other.size() + 1), other.end());
        break;
      }
      default:
        if (at != bytes.end()) *at = odd();
    }
  }
  bytes.resize(std::min(bytes.size(), kMostMutated));
  return bytes;
}

std::string Hex(const Bytes& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += "0123456789abcdef"[byte / 16], text += "0123456789abcdef"[byte % 16];
  return text;
}

Bytes RandomBytes(uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(random() % kMostBytes);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(random() >> 13); });
  return bytes;
}

TEST(FuzzedGraphs, OfTheCorpusAreRefusedOrRight) {
  const auto files = CorpusFiles();
  for (const auto& file : files) EXPECT_EQ(CheckBytes(ReadFile(file)).problem, "") << file;
  EXPECT_GT(files.size(), 20u) << "in " << PENSTOCK_FUZZ_CORPUS;
}

class MutantGraphs : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Shard, MutantGraphs, testing::Range(0u, uint32_t{kShards}));

TEST_P(MutantGraphs, AreRefusedOrRight) {
  std::vector<Bytes> corpus;
  for (const auto& file : CorpusFiles()) corpus.push_back(ReadFile(file));
  ASSERT_FALSE(corpus.empty());
  const auto first = static_cast<uint32_t>(FromEnvironment("PENSTOCK_FUZZ_SEED", kFirstSeed));
  const auto count = static_cast<uint32_t>(FromEnvironment("PENSTOCK_FUZZ_MUTANTS", kMutants));
  uint32_t tried = 0, accepted = 0, ran = 0;
  for (uint32_t seed = first + GetParam(); seed - first < count; seed += kShards) {
    const Bytes bytes = Mutant(corpus, seed);
    const Outcome outcome = CheckBytes(bytes);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed << ", bytes " << Hex(bytes);
    ++tried;
    accepted += outcome.accepted;
    ran += outcome.ran;
  }
  std::cout << tried << " mutants: " << accepted << " planned, " << ran << " compiled\n";
  if (tried < 100) return;  // too few to say something about shares
  EXPECT_GT(accepted, tried / 10);
  EXPECT_GT(tried - accepted, tried / 10);
  EXPECT_GT(ran, tried / 10);
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

TEST(FuzzedConstructs, OfRandomBytesAreRefusedOrRight) {
  const ModeScope drawn("");
  const auto first = static_cast<uint32_t>(FromEnvironment("PENSTOCK_FUZZ_SEED", kFirstSeed));
  const auto count = static_cast<uint32_t>(FromEnvironment("PENSTOCK_FUZZ_MUTANTS", kConstructs));
  uint32_t accepted = 0;
  for (uint32_t seed = first; seed - first < count; ++seed) {
    const Outcome outcome = CheckControlBytes(RandomBytes(seed));
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
    accepted += outcome.accepted;
  }
  std::cout << count << " inputs: " << accepted << " compiled\n";
  if (count < 100) return;  // too few to say something about shares
  EXPECT_GT(accepted, count / 20);
  EXPECT_GT(count - accepted, count / 20);
}

TEST(FuzzedAlgorithms, OfTheCorpusAreRefusedOrRight) {
  const ModeScope drawn("");
  const auto files = CorpusFiles(PENSTOCK_ALGORITHM_CORPUS);
  for (const auto& file : files) EXPECT_EQ(CheckAlgorithmBytes(ReadFile(file)).problem, "") << file;
  EXPECT_GT(files.size(), 5u) << "in " << PENSTOCK_ALGORITHM_CORPUS;
}

TEST(FuzzedAlgorithms, OfRandomBytesAreRefusedOrRight) {
  const ModeScope drawn("");
  const auto first = static_cast<uint32_t>(FromEnvironment("PENSTOCK_FUZZ_SEED", kFirstSeed));
  const auto count = static_cast<uint32_t>(FromEnvironment("PENSTOCK_FUZZ_MUTANTS", kAlgorithms));
  uint32_t ran = 0, told = 0;
  for (uint32_t seed = first; seed - first < count; ++seed) {
    const Outcome outcome = CheckAlgorithmBytes(RandomBytes(seed));
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
    ran += outcome.ran;
    told += outcome.told > 20 ? 1 : 0;
  }
  std::cout << count << " inputs: " << ran << " compiled, " << told << " with values that the interpreter told\n";
  if (count < 100) return;  // too few to say something about shares
  EXPECT_GT(ran, count / 4);
  EXPECT_GT(told, ran / 2);
  EXPECT_GT(count - ran, count / 20);
}

}  // namespace
}  // namespace penstock::fuzz::corpus_test

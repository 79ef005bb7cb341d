// The corpus of profiles, and mutants of it, through what the fuzzer does with each. Always the same inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/check_profile_bytes.h"

namespace penstock::fuzz::profile_corpus_test {
namespace {

std::vector<std::string> Corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(PENSTOCK_PROFILE_CORPUS)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

// Where a value, a name or a list begins or ends.
std::vector<size_t> StructuralPlaces(const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = 0; at < text.size(); ++at) {
    if (std::string_view("{}[],:\"").find(text[at]) != std::string_view::npos) places.push_back(at);
  }
  return places;
}

// The value that begins at `at`, without its end if it is a list.
std::string WithAnotherValue(const std::string& text, size_t at, std::string_view value) {
  const size_t end = text[at] == '"' ? text.find('"', at + 1) + 1 : text.find_first_of(",]}", at);
  return end == std::string::npos || end < at ? text : text.substr(0, at) + std::string(value) + text.substr(end);
}

TEST(FuzzedProfiles, OfTheCorpusAreRefusedOrRight) {
  int accepted = 0, all = 0;
  for (const std::string& text : Corpus()) {
    const ProfileOutcome outcome = CheckProfileBytes(text);
    EXPECT_EQ(outcome.problem, "") << text.substr(0, 200);
    accepted += outcome.accepted;
    ++all;
  }
  EXPECT_GE(accepted, 3);
  EXPECT_GE(all - accepted, 3);
}

TEST(FuzzedProfiles, TruncatedAnywhereAreRefusedOrRight) {
  for (const std::string& text : Corpus()) {
    size_t number = 0;
    for (const size_t place : StructuralPlaces(text)) {
      const std::string_view truncated = std::string_view(text).substr(0, place + number++ % 2);
      ASSERT_EQ(CheckProfileBytes(truncated).problem, "") << truncated;
    }
  }
}

TEST(FuzzedProfiles, WithValuesOfOtherTypesAreRefusedOrRight) {
  constexpr std::string_view kValues[] = {"null", "-1", "1e17", "\"x\"", "[]", "{}", "[[0]]", "99999999999999999999"};
  std::mt19937 random(1);
  int accepted = 0, tried = 0;
  for (const std::string& text : Corpus()) {
    for (const size_t place : StructuralPlaces(text)) {
      if (text[place] != ':' && text[place] != ',' && text[place] != '[') continue;
      if (place + 1 == text.size() || random() % 3 != 0) continue;
      const std::string mutant = WithAnotherValue(text, place + 1, kValues[random() % std::size(kValues)]);
      const ProfileOutcome outcome = CheckProfileBytes(mutant);
      ASSERT_EQ(outcome.problem, "") << mutant;
      accepted += outcome.accepted;
      ++tried;
    }
  }
  EXPECT_GT(tried, 300);
  EXPECT_GT(accepted, tried / 50);
  EXPECT_GT(tried - accepted, tried / 10);
}

TEST(FuzzedProfiles, WithBytesFlippedAreRefusedOrRight) {
  const std::vector<std::string> corpus = Corpus();
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    std::mt19937 random(seed);
    std::string text = corpus[random() % corpus.size()];
    if (text.empty()) continue;
    for (auto left = 1 + random() % 4; left > 0; --left)
      text[random() % text.size()] ^= static_cast<char>(1 << random() % 8);
    ASSERT_EQ(CheckProfileBytes(text).problem, "") << "seed " << seed << '\n' << text;
  }
}

}  // namespace
}  // namespace penstock::fuzz::profile_corpus_test

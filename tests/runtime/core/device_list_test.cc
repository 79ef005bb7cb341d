// ParseDeviceList: what is accepted, and that every refusal shows the text, the part, the reason and the language.
#include "src/runtime/core/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace penstock::runtime::device_list_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeviceRequest AllCuda() { return {.cuda = true, .all = true}; }
DeviceRequest Cuda(std::vector<int> ordinals) { return {.cuda = true, .ordinals = std::move(ordinals)}; }
DeviceRequest Host(int count) { return {.host_count = count}; }

std::vector<DeviceRequest> Parsed(std::string_view text) {
  const auto requests = ParseDeviceList(text);
  EXPECT_TRUE(requests.ok()) << requests.status();
  return requests.value_or(std::vector<DeviceRequest>());
}

TEST(DeviceList, EachKindOfPart) {
  EXPECT_THAT(Parsed("cuda"), ElementsAre(AllCuda()));
  EXPECT_THAT(Parsed("cuda:3"), ElementsAre(Cuda({3})));
  EXPECT_THAT(Parsed("cuda:2,0"), ElementsAre(Cuda({2, 0})));
  EXPECT_THAT(Parsed("host"), ElementsAre(Host(1)));
  EXPECT_THAT(Parsed("host:4"), ElementsAre(Host(4)));
}

TEST(DeviceList, PartsKeepTheirOrder) {
  EXPECT_THAT(Parsed("cuda:1,0;host:2"), ElementsAre(Cuda({1, 0}), Host(2)));
  EXPECT_THAT(Parsed("host;cuda"), ElementsAre(Host(1), AllCuda()));
}

TEST(DeviceList, SpacesAreIgnored) {
  EXPECT_THAT(Parsed("  cuda : 0 ,\t2 ;  host : 3 "), ElementsAre(Cuda({0, 2}), Host(3)));
}

TEST(DeviceList, LargestNumbers) {
  EXPECT_THAT(Parsed("host:1024"), ElementsAre(Host(1024)));
  EXPECT_THAT(Parsed("cuda:1023"), ElementsAre(Cuda({1023})));
  EXPECT_THAT(Parsed("host:0004"), ElementsAre(Host(4)));
}

struct Refusal {
  std::string text, part, why;
};

class DeviceListRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(DeviceListRefuses, WithTextPartReasonAndLanguage) {
  const auto& [text, part, why] = GetParam();
  const absl::Status status = ParseDeviceList(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("device list '" + text + "', part '" + part + "': "));
  EXPECT_THAT(message, HasSubstr(why));
  EXPECT_THAT(message, HasSubstr("write cuda, cuda:0,2, host or host:4, or several of them joined by ';'"));
}

INSTANTIATE_TEST_SUITE_P(
    Lists, DeviceListRefuses,
    testing::Values(
        Refusal{"", "", "a part is empty"}, Refusal{" ", "", "a part is empty"},
        Refusal{"cuda;", "", "a part is empty"}, Refusal{";host", "", "a part is empty"},
        Refusal{"cuda:0; ;host", "", "a part is empty"},
        Refusal{"host;gpu:1", "gpu:1", "no kind of device called 'gpu'"},
        Refusal{"CUDA", "CUDA", "no kind of device called 'CUDA'"}, Refusal{"0", "0", "no kind of device called '0'"},
        Refusal{"cuda 0", "cuda 0", "no kind of device called 'cuda 0'"},
        Refusal{"cuda:", "cuda:", "a number is missing"}, Refusal{"cuda:0,", "cuda:0,", "a number is missing"},
        Refusal{"host:", "host:", "a number is missing"}, Refusal{"cuda:x", "cuda:x", "'x' is not a number"},
        Refusal{"cuda:0,1x", "cuda:0,1x", "'1x' is not a number"},
        Refusal{"cuda:0 1", "cuda:0 1", "'0 1' is not a number"},
        Refusal{"host:1.5", "host:1.5", "'1.5' is not a number"}, Refusal{"host:+1", "host:+1", "'+1' is not a number"},
        Refusal{"host:1,2", "host:1,2", "'1,2' is not a number"},
        Refusal{"cuda:0:1", "cuda:0:1", "'0:1' is not a number"}, Refusal{"cuda:-1", "cuda:-1", "'-1' is negative"},
        Refusal{"host:-99999999999", "host:-99999999999", "'-99999999999' is negative"},
        Refusal{"host:0", "host:0", "at least one host device"},
        Refusal{"host:1025", "host:1025", "1025 is too large; the most is 1024"},
        Refusal{"cuda:1024", "cuda:1024", "1024 is too large; the most is 1023"},
        Refusal{"cuda:99999999999999999999", "cuda:99999999999999999999", "too large"},
        Refusal{"cuda:1,2,1", "cuda:1,2,1", "CUDA device 1 is named twice"},
        Refusal{"cuda:1;host;cuda:0", "cuda:0", "cuda is named twice; give its numbers in one part, as in cuda:0,2"},
        Refusal{"cuda:1;cuda", "cuda", "cuda is named twice"}, Refusal{"cuda;cuda:1", "cuda:1", "cuda is named twice"},
        Refusal{"cuda;cuda", "cuda", "cuda is named twice"},
        Refusal{"host;cuda;host:2", "host:2", "host is named twice"}));

// Texts of the language's own characters: refused or accepted, never anything else.
TEST(DeviceList, RandomTextsAreAcceptedOrRefused) {
  const uint32_t seed = 4711;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {"cuda", "host", ":", ";", ",", "0", "1", "7", "-", " ", "99999999999", "x"};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = random() % 8; n > 0; --n) text += pieces[random() % pieces.size()];
    const auto requests = ParseDeviceList(text);
    if (!requests.ok()) {
      ASSERT_EQ(requests.status().code(), absl::StatusCode::kInvalidArgument) << text;
      continue;
    }
    ++accepted;
    ASSERT_FALSE(requests->empty()) << text;
    for (const DeviceRequest& r : *requests) {
      ASSERT_EQ(r.cuda, r.host_count == 0) << text;
      ASSERT_TRUE(!r.cuda || r.all == r.ordinals.empty()) << text;
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace penstock::runtime::device_list_test

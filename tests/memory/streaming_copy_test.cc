// StreamingCopy: every alignment and length around its thresholds, against a plain copy.
#include "src/memory/streaming_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "src/driver/copy_box.h"

namespace penstock::memory::streaming_copy_test {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes Random(size_t n) {
  std::mt19937_64 random(n);
  Bytes bytes(n);
  for (unsigned char& b : bytes) b = static_cast<unsigned char>(random());
  return bytes;
}

TEST(StreamingCopy, CopiesEveryLengthFromAndToEveryAlignment) {
  const Bytes in = Random(20000);
  for (const size_t bytes : {0, 1, 63, 64, 4095, 4096, 4097, 4160, 8191, 12345}) {
    for (size_t from = 0; from < 64; from += 7) {
      for (size_t to = 0; to < 64; to += 5) {
        Bytes out(20000, 0xEE), expected = out;
        StreamingCopy({.dst = out.data() + to, .src = in.data() + from, .width = bytes});
        std::memcpy(expected.data() + to, in.data() + from, bytes);
        ASSERT_EQ(out, expected) << bytes << " from " << from << " to " << to;
      }
    }
  }
}

TEST(StreamingCopy, CopiesBoxes) {
  const Bytes in = Random(90000);
  Bytes out(90000, 0xEE), expected = out;
  driver::CopyOp op{.src = in.data() + 3, .width = 5000, .height = 3, .depth = 4};
  op.src_pitch = 5003, op.src_slice = 16001, op.dst_pitch = 6001, op.dst_slice = 18007;
  op.dst = out.data() + 1;
  StreamingCopy(op);
  op.dst = expected.data() + 1;
  driver::CopyOnHost(op);
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace penstock::memory::streaming_copy_test

// SHA-256 against the examples of its standard, and however its input is cut.
#include "src/jit/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace penstock::jit::sha256_test {
namespace {

// FIPS 180-4 and the test vectors that NIST publishes with it; the others are what coreutils' sha256sum says.
TEST(Sha256, GivesWhatTheStandardSays) {
  EXPECT_EQ(HexOf(Sha256Of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOf(Sha256Of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf(Sha256Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HexOf(Sha256Of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(HexOf(Sha256Of(std::string(55, 'a'))), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(HexOf(Sha256Of(std::string(64, 'a'))), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(Sha256, DoesNotDependOnHowTheInputIsCut) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t size = 0; size <= text.size(); ++size) {
    const std::string_view whole = std::string_view(text).substr(0, size);
    const Digest expected = Sha256Of(whole);
    for (const size_t piece : {1, 3, 63, 64, 65}) {
      Sha256 hash;
      for (size_t at = 0; at < size; at += piece) hash.Add(whole.substr(at, piece));
      ASSERT_EQ(hash.Finish(), expected) << size << " bytes in pieces of " << piece;
    }
  }
}

TEST(Sha256, TellsTextsApartWithTheirSizes) {
  EXPECT_NE(Sha256().AddText("ab").AddText("c").Finish(), Sha256().AddText("a").AddText("bc").Finish());
  EXPECT_EQ(Sha256().Add("ab").Add("c").Finish(), Sha256().Add("a").Add("bc").Finish());
}

}  // namespace
}  // namespace penstock::jit::sha256_test

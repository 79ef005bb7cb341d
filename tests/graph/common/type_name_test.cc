// What makes two types one to a graph. Several shared objects: tests/consumers/objects.
#include <gtest/gtest.h>

#include <complex>
#include <string_view>

#include "penstock/detail/type_of.h"

namespace penstock::detail::type_name_test {
namespace {

constexpr TypeInfo kLayout{.size = 4, .align = 4};
int here, there;  // stand for objects that two libraries have for a type

TEST(TypeName, NamedTypesAreTheSameWhateverObjectAsks) {
  EXPECT_EQ(NameType(kLayout, "ns::F", "N2ns1FE", &here), NameType(kLayout, "ns::F", "N2ns1FE", &there));
  EXPECT_FALSE(NameType(kLayout, "ns::F", "N2ns1FE", &here) == NameType(kLayout, "ns::G", "N2ns1GE", &here));
}

TEST(TypeName, CompilersNeedNotAgreeOnWordsWhereBothHaveRtti) {
  const TypeInfo gnu = NameType(kLayout, "V<long unsigned int>", "1VImE", &here);
  EXPECT_EQ(gnu, NameType(kLayout, "V<unsigned long>", "1VImE", &there));
  EXPECT_FALSE(gnu == NameType(kLayout, "V<long unsigned int>", "N1n1VImEE", &there));
}

TEST(TypeName, WordsCountWhereOneSideHasNoRtti) {
  const TypeInfo with = NameType(kLayout, "ns::F", "N2ns1FE", &here);
  EXPECT_EQ(with, NameType(kLayout, "ns::F", nullptr, &there));
  EXPECT_FALSE(with == NameType(kLayout, "ns::G", nullptr, &there));
}

TEST(TypeName, LayoutCounts) {
  const TypeInfo type = NameType(kLayout, "F", "1F", &here);
  EXPECT_FALSE(type == NameType({.size = 8, .align = 4}, "F", "1F", &here));
  EXPECT_FALSE(type == NameType({.size = 4, .align = 2}, "F", "1F", &here));
}

// As g++, clang and nvcc say it; a local type of a static function only has it in its mangled name.
TEST(TypeName, TypesOfOneUnitAreNoOtherUnits) {
  const std::pair<const char*, const char*> units[] = {
      {"{anonymous}::P", "N12_GLOBAL__N_11PE"},  {"(anonymous namespace)::P", "N12_GLOBAL__N_11PE"},
      {"_GLOBAL__N__1d0a_4_a_cu_f::P", nullptr}, {"main()::<lambda(int)>", nullptr},
      {"(lambda at a.cc:9:14)", nullptr},        {"Local", "ZL3foovE5Local"}};
  for (const auto& [words, mangled] : units) {
    EXPECT_EQ(NameType(kLayout, words, mangled, &here), NameType(kLayout, words, mangled, &here)) << words;
    EXPECT_FALSE(NameType(kLayout, words, mangled, &here) == NameType(kLayout, words, mangled, &there)) << words;
  }
}

struct Unnamed {};

TEST(TypeName, CompilersSpellTypesAsExpected) {
  EXPECT_EQ(SpellingOf<float>(), "float");
  EXPECT_EQ(SpellingOf<unsigned long>(), "unsigned long");
  EXPECT_EQ(SpellingOf<short>(), "short");
  EXPECT_EQ(SpellingOf<std::complex<float>>(), "std::complex<float>");
  EXPECT_EQ(SpellingOf<TypeInfo>(), "penstock::TypeInfo");
  EXPECT_NE(SpellingOf<Unnamed>().find("nonymous"), std::string_view::npos);
  EXPECT_EQ(TypeOf<float>(), TypeOf<float>());
  EXPECT_FALSE(TypeOf<long>() == TypeOf<long long>());
  EXPECT_EQ(TypeOf<double>().number, NumberKind::kFloat);
}

}  // namespace
}  // namespace penstock::detail::type_name_test

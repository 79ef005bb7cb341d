// What a folder holds, and what of it is refused.
#include "examples/photos/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "examples/photos/tests/pictures.h"

namespace photos::catalogue_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(CatalogueTest, HoldsPhotographsInOrderWithTheirSizes) {
  TempFolder folder;
  WriteRandomPng(folder / "b.png", 30, 4, 1);
  WriteRandomPng(folder / "a.png", 7, 90, 2);
  absl::StatusOr<Catalogue> catalogue = ReadCatalogue(folder.path());
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  ASSERT_THAT(catalogue->photos, SizeIs(2));
  EXPECT_EQ(catalogue->photos[0].name, "a.png");
  EXPECT_EQ(catalogue->photos[0].path, folder / "a.png");
  EXPECT_EQ(catalogue->photos[1].info, (ImageInfo{ImageFormat::kPng, 30, 4}));
  EXPECT_EQ(catalogue->max_width, 30);
  EXPECT_EQ(catalogue->max_height, 90);
  EXPECT_THAT(catalogue->refused, IsEmpty());
}

TEST(CatalogueTest, NamesWhatIsNoPhotographAndKeepsTheRest) {
  TempFolder folder;
  WriteRandomPng(folder / "a.png", 3, 4, 1);
  WriteText(folder / "notes.txt", "notes");
  absl::StatusOr<Catalogue> catalogue = ReadCatalogue(folder.path());
  ASSERT_TRUE(catalogue.ok());
  EXPECT_THAT(catalogue->photos, SizeIs(1));
  ASSERT_THAT(catalogue->refused, SizeIs(1));
  EXPECT_THAT(std::string(catalogue->refused[0].message()), HasSubstr("notes.txt'"));
}

TEST(CatalogueTest, EmptyFolderIsAnError) {
  TempFolder folder;
  WriteText(folder / "LICENSES.md", "terms");
  const absl::Status status = ReadCatalogue(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is empty"));
}

TEST(CatalogueTest, ShippedPhotographsAreAllReadable) {
  absl::StatusOr<Catalogue> catalogue = ReadCatalogue(PHOTOS_FOLDER);
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  EXPECT_THAT(catalogue->photos, SizeIs(7));
  EXPECT_THAT(catalogue->refused, IsEmpty());
  EXPECT_EQ(catalogue->max_width, 1411);
}

}  // namespace
}  // namespace photos::catalogue_test

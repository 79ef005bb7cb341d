// The program as its user sees it: files, exit codes, what it prints. On host devices.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "examples/photos/image_io.h"
#include "examples/photos/reference.h"
#include "examples/photos/tests/pictures.h"

extern char** environ;

namespace photos::program_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Ended {
  int exit_code = -1;
  std::string out, err;
};

std::string Text(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadBytes(path);
  return {bytes.begin(), bytes.end()};
}

// Runs the program with standard output and error in files.
Ended RunPhotos(std::vector<std::string> arguments) {
  TempFolder folder;
  arguments.insert(arguments.begin(), PHOTOS_PROGRAM);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, (folder / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, (folder / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t child = 0;
  const int error = posix_spawn(&child, PHOTOS_PROGRAM, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << "cannot start " << PHOTOS_PROGRAM;
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child) return {};
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Text(folder / "out"), Text(folder / "err")};
}

std::vector<uint8_t> DecodeAll(const std::string& path, ImageInfo* info) {
  absl::StatusOr<ImageInfo> read = ReadImageInfo(path);
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return {};
  *info = *read;
  std::vector<uint8_t> rgb(static_cast<size_t>(info->rgb_bytes()));
  const absl::Status status = DecodeRgb(path, *info, rgb);
  EXPECT_TRUE(status.ok()) << status;
  return rgb;
}

// The written picture is the reference of the photograph, pixel for pixel.
void ExpectEdges(const std::string& photo, const std::string& edges, int blur) {
  ImageInfo photo_info, edges_info;
  const std::vector<uint8_t> rgb = DecodeAll(photo, &photo_info);
  const std::vector<uint8_t> written = DecodeAll(edges, &edges_info);
  ASSERT_EQ(photo_info.width, edges_info.width) << edges;
  ASSERT_EQ(photo_info.height, edges_info.height) << edges;
  const GreyPicture expected = ReferenceEdges(rgb, photo_info.width, photo_info.height, blur);
  size_t wrong = 0;
  for (size_t i = 0; i < expected.pixels.size(); ++i) wrong += written[3 * i] != expected.pixels[i];
  EXPECT_EQ(wrong, 0u) << edges;
}

class ProgramTest : public testing::Test {
 protected:
  Ended Run(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {in_.path(), out_.path(), "--devices", "host", "--compare", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunPhotos(std::move(arguments));
  }
  void ExpectEdgesOf(const std::string& name, int blur = 1) {
    ExpectEdges(in_ / name, out_ / (name + ".edges.png"), blur);
  }

  TempFolder in_, out_;
};

// Pictures of many sizes, one pixel among them.
const std::vector<std::pair<int, int>> kSizes = {{1, 1}, {64, 48}, {48, 64}, {1, 200}, {133, 1}, {301, 199}, {17, 31}};

std::string PictureName(size_t i) { return absl::StrCat("p", i, ".png"); }

void WritePictures(const TempFolder& folder) {
  for (size_t i = 0; i < kSizes.size(); ++i) {
    WriteRandomPng(folder / PictureName(i), kSizes[i].first, kSizes[i].second, static_cast<uint32_t>(i));
  }
}

struct Shape {
  const char* devices;
  const char* slots;
  const char* workers;
  const char* blur;
};

class ProgramShapeTest : public ProgramTest, public testing::WithParamInterface<Shape> {};

TEST_P(ProgramShapeTest, EveryPictureEqualsTheReference) {
  WritePictures(in_);
  const Shape& shape = GetParam();
  const Ended ended =
      RunPhotos({in_.path(), out_.path(), "--devices", shape.devices, "--slots", shape.slots, "--workers",
                 shape.workers, "--blur", shape.blur, "--repeat", "3", "--verify", "--compare", "0"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(out_.Names().size(), kSizes.size());
  for (size_t i = 0; i < kSizes.size(); ++i) ExpectEdgesOf(PictureName(i), std::stoi(shape.blur));
}

INSTANTIATE_TEST_SUITE_P(Shapes, ProgramShapeTest,
                         testing::Values(Shape{"host", "1", "1", "1"}, Shape{"host", "3", "4", "2"},
                                         Shape{"host:2", "2", "2", "0"}, Shape{"host:3", "1", "5", "3"}));

TEST_F(ProgramTest, ShippedPhotographsEqualTheReference) {
  const Ended ended = RunPhotos({PHOTOS_FOLDER, out_.path(), "--devices", "host"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(out_.Names().size(), 7u);
  for (const char* name : {"astronaut.png", "camera.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg",
                           "retina.jpg", "rocket.jpg"}) {
    ExpectEdges(std::string(PHOTOS_FOLDER) + "/" + name, out_ / (std::string(name) + ".edges.png"), 1);
  }
}

TEST_F(ProgramTest, SerialWritesTheSame) {
  WritePictures(in_);
  EXPECT_EQ(Run({"--serial", "--verify"}).exit_code, 0);
  for (size_t i = 0; i < kSizes.size(); ++i) ExpectEdgesOf(PictureName(i));
}

TEST_F(ProgramTest, PreloadedPassesWriteTheSame) {
  WritePictures(in_);
  EXPECT_EQ(Run({"--preload", "--repeat", "20", "--workers", "3", "--slots", "3", "--verify"}).exit_code, 0);
  for (size_t i = 0; i < kSizes.size(); ++i) ExpectEdgesOf(PictureName(i));
}

TEST_F(ProgramTest, TruncatedFileIsNamedAndSkippedOnce) {
  WritePictures(in_);
  std::vector<uint8_t> bytes = ReadBytes(in_ / "p5.png");
  bytes.resize(bytes.size() / 2);
  WriteBytes(in_ / "p5.png", bytes);
  for (const char* mode : {"--verify", "--preload", "--serial"}) {
    const Ended ended = Run({"--repeat", "3", mode});
    EXPECT_EQ(ended.exit_code, 1) << mode << ": " << ended.err;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("p5.png'"), HasSubstr("truncated or damaged"))) << mode;
    EXPECT_EQ(ended.err.find("p5.png'", ended.err.find("p5.png'") + 1), std::string::npos) << mode << ended.err;
    EXPECT_EQ(out_.Names().size(), kSizes.size() - 1) << mode;
    ExpectEdgesOf("p6.png");
  }
}

TEST_F(ProgramTest, NonImageFilesAreNamedAndSkipped) {
  WriteRandomPng(in_ / "a.png", 5, 6, 1);
  WriteText(in_ / "fake.jpg", "text");
  WriteText(in_ / "notes.txt", "text");
  const Ended ended = Run();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("fake.jpg'"), HasSubstr("notes.txt'")));
  EXPECT_THAT(out_.Names(), ElementsAre("a.png.edges.png"));
}

TEST_F(ProgramTest, NothingButBadFilesIsNoCrash) {
  WriteText(in_ / "fake.jpg", "text");
  EXPECT_EQ(Run().exit_code, 1);
  EXPECT_THAT(out_.Names(), IsEmpty());
}

TEST_F(ProgramTest, NamesThatMeetGetDifferentOutputs) {
  WriteRandomPng(in_ / "a.png", 9, 6, 1);
  WriteRandomPng(in_ / "a.jpg", 6, 9, 2);  // a PNG by content, which is what counts
  EXPECT_EQ(Run().exit_code, 0);
  EXPECT_THAT(out_.Names(), ElementsAre("a.jpg.edges.png", "a.png.edges.png"));
  ExpectEdgesOf("a.png");
  ExpectEdgesOf("a.jpg");
}

TEST_F(ProgramTest, RareKindsOfFilesWork) {
  PngFile deep;
  deep.width = 12;
  deep.height = 7;
  deep.depth = 16;
  deep.color_type = 6;
  deep.interlaced = true;
  std::mt19937 random(3);
  deep.rows = RandomBytes(&random, 12 * 7 * 8);
  WritePng(in_ / "deep.png", deep);
  JpegFile cmyk;
  cmyk.width = 16;
  cmyk.height = 9;
  cmyk.components = 4;
  cmyk.color_space = 4;  // JCS_CMYK
  cmyk.adobe_marker = true;
  cmyk.samples = RandomBytes(&random, 16 * 9 * 4);
  WriteJpeg(in_ / "cmyk.jpg", cmyk);
  EXPECT_EQ(Run().exit_code, 0);
  ExpectEdgesOf("deep.png");
  ExpectEdgesOf("cmyk.jpg");
}

TEST_F(ProgramTest, TableHasBothColumnsAndTheRatio) {
  WritePictures(in_);
  const Ended ended = RunPhotos({in_.path(), out_.path(), "--devices", "host", "--compare", "3"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("pipelined"), HasSubstr("serial"), HasSubstr("decode"), HasSubstr("H2D"),
                               HasSubstr("compute"), HasSubstr("D2H"), HasSubstr("encode"),
                               HasSubstr("copy time hidden"), HasSubstr("ratio")));
}

TEST_F(ProgramTest, ShowsNoProgressWhereThereIsNoTerminal) {
  WritePictures(in_);
  EXPECT_EQ(Run({"--repeat", "5"}).err, "");
}

TEST_F(ProgramTest, WritesTraceOfAllFiveSteps) {
  WritePictures(in_);
  TempFolder traces;
  EXPECT_EQ(Run({"--trace", traces / "t.json"}).exit_code, 0);
  const nlohmann::json trace = nlohmann::json::parse(Text(traces / "t.json"));
  std::multiset<std::string> names;
  for (const auto& event : trace.is_array() ? trace : trace.at("traceEvents")) {
    if (event.at("ph") == "X") names.insert(event.at("name").get<std::string>());
  }
  for (const char* name : {"decode", "to grey", "blur 1", "sobel", "encode"}) {
    EXPECT_EQ(names.count(name), kSizes.size()) << name;
  }
  EXPECT_GT(names.size(), 6 * kSizes.size());  // the copies, whatever they are called
}

TEST_F(ProgramTest, PicturesAfterTheTracedOnesAreDoneToo) {
  WritePictures(in_);
  TempFolder traces;
  const Ended ended = Run({"--repeat", "3", "--trace-pictures", "9", "--verify", "--trace", traces / "t.json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(ContainsRegex("images +21\n"), HasSubstr("first 9 images")));
  const nlohmann::json trace = nlohmann::json::parse(Text(traces / "t.json"));
  size_t encoded = 0;
  for (const auto& event : trace.is_array() ? trace : trace.at("traceEvents")) encoded += event.at("name") == "encode";
  EXPECT_EQ(encoded, 9u);
}

// A folder in the place of an edge picture.
TEST_F(ProgramTest, PictureThatCannotBeWrittenBreaksTheJobOff) {
  WritePictures(in_);
  for (const char* mode : {"--verify", "--preload", "--serial"}) {
    std::filesystem::create_directories(out_ / (PictureName(2) + ".edges.png/full"));
    const Ended ended = Run({"--repeat", "1000000", mode});
    EXPECT_EQ(ended.exit_code, 3) << mode << ": " << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(PictureName(2) + ".edges.png'")) << mode;
  }
}

TEST_F(ProgramTest, EmptyFolderExitsWithTwo) {
  const Ended ended = Run();
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("is empty"));
}

TEST_F(ProgramTest, MissingInputExitsWithTwo) {
  const Ended ended = RunPhotos({in_ / "none", out_.path()});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("none'"));
}

TEST_F(ProgramTest, OutputThatCannotBeWrittenExitsWithTwo) {
  WritePictures(in_);
  WriteText(out_ / "file", "x");
  for (const std::string& output : {out_ / "file", std::string("/proc/self")}) {
    const Ended ended = RunPhotos({in_.path(), output, "--devices", "host"});
    EXPECT_EQ(ended.exit_code, 2) << output;
    EXPECT_THAT(ended.err, HasSubstr(output));
  }
}

TEST_F(ProgramTest, TraceThatCannotBeWrittenExitsWithTwo) {
  WritePictures(in_);
  EXPECT_EQ(Run({"--trace", out_ / "none/t.json"}).exit_code, 2);
  EXPECT_THAT(out_.Names(), IsEmpty());
}

TEST_F(ProgramTest, InputAsOutputExitsWithTwo) {
  WritePictures(in_);
  EXPECT_EQ(RunPhotos({in_.path(), in_.path(), "--devices", "host"}).exit_code, 2);
}

TEST_F(ProgramTest, UnknownDeviceExitsWithTwo) {
  WritePictures(in_);
  for (const char* devices : {"toaster", "host:0", "host:x", "cuda:99"}) {
    const Ended ended = RunPhotos({in_.path(), out_.path(), "--devices", devices});
    EXPECT_EQ(ended.exit_code, 2) << devices;
    EXPECT_THAT(ended.err, Not(IsEmpty())) << devices;
    EXPECT_THAT(out_.Names(), IsEmpty());
  }
}

TEST_F(ProgramTest, BadUsageExitsWithTwoAndHelpWithNone) {
  EXPECT_EQ(RunPhotos({}).exit_code, 2);
  EXPECT_EQ(RunPhotos({in_.path(), out_.path(), "--slots", "none"}).exit_code, 2);
  const Ended help = RunPhotos({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--devices"));
}

}  // namespace
}  // namespace photos::program_test

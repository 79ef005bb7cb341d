// How figures are shown.
#include "src/cli/measure/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "src/cli/measure/processor.h"
#include "src/cli/measure/progress.h"

namespace penstock::cli::measure::figures_test {
namespace {

const std::vector<Device> kDevices = {{"cuda:0", "NVIDIA H200", true, 1}, {"cuda:1", "NVIDIA H200", true, 1}};

TEST(Figures, CopiesHaveALineForEachSizeAndADashForWhatWasNotMeasured) {
  const std::vector<Figure> figures = {{Part::kCopies, "cuda:0", "", "H2D pinned", 1 << 20, "GB/s", 40.04},
                                       {Part::kCopies, "cuda:0", "", "D2H pinned", 1 << 20, "GB/s", 41},
                                       {Part::kCopies, "cuda:0", "", "D2D", 4096, "GB/s", 2.345},
                                       {Part::kCopies, "cuda:0", "", "H2D both ways", 4096, "GB/s", 1},
                                       {Part::kCopies, "cuda:0", "", "D2H both ways", 4096, "GB/s", 2},
                                       {Part::kCopies, "cuda:0", "", "H2D not pinned", 4096, "GB/s", 3},
                                       {Part::kCopies, "cuda:0", "", "D2H not pinned", 4096, "GB/s", 1234.5}};
  EXPECT_EQ(PartText(Part::kCopies, kDevices, figures),
            "Copies on cuda:0, NVIDIA H200, in GB/s\n"
            "             pinned    pinned both ways both ways not pinned not pinned\n"
            "size            H2D       D2H       H2D       D2H        H2D        D2H       D2D\n"
            "4 KiB             -         -      1.00      2.00       3.00       1234      2.35\n"
            "1 MiB          40.0      41.0         -         -          -          -         -\n");
}

TEST(Figures, PeersAreASquareWithDashesOnItsDiagonal) {
  const std::vector<Figure> figures = {{Part::kPeers, "cuda:0", "cuda:1", "peer", 1 << 28, "GB/s", 395},
                                       {Part::kPeers, "cuda:1", "cuda:0", "peer", 1 << 28, "GB/s", 5.5}};
  EXPECT_EQ(PartText(Part::kPeers, kDevices, figures),
            "Copies of 256 MiB from a row's device to a column's, in GB/s\n"
            "from         cuda:0    cuda:1\n"
            "cuda:0            -       395\n"
            "cuda:1         5.50         -\n");
  EXPECT_EQ(PartText(Part::kPeers, {kDevices[0]}, {}), "");
}

TEST(Figures, LaunchesHaveALineForEachDevice) {
  const std::vector<Figure> figures = {{Part::kLaunches, "cuda:0", "", "launch", 0, "us", 2.4},
                                       {Part::kLaunches, "cuda:1", "", "host node", 0, "us", 13.5}};
  EXPECT_EQ(PartText(Part::kLaunches, kDevices, figures),
            "Launches, in us\n"
            "                        empty    stream     graph      host     small\n"
            "device       launch       run      node      node      node      copy\n"
            "cuda:0         2.40         -         -         -         -         -\n"
            "cuda:1            -         -         -         -      13.5         -\n");
}

TEST(Figures, AreLinesOfATableForPrograms) {
  const std::vector<Figure> figures = {{Part::kPeers, "cuda:0", "cuda:1", "peer", 4096, "GB/s", 395.25},
                                       {Part::kLaunches, "cuda:0", "", "launch", 0, "us", 2.5}};
  EXPECT_EQ(FiguresCsv(figures),
            "part,device,to,what,bytes,unit,value\n"
            "peers,cuda:0,cuda:1,peer,4096,GB/s,395.25\n"
            "launches,cuda:0,,launch,0,us,2.5\n");
  EXPECT_EQ(FiguresJson(figures),
            nlohmann::json::parse(R"([{"part": "peers", "device": "cuda:0", "to": "cuda:1", "what": "peer",
                                       "bytes": 4096, "unit": "GB/s", "value": 395.25},
                                      {"part": "launches", "device": "cuda:0", "what": "launch", "unit": "us",
                                       "value": 2.5}])"));
}

TEST(Figures, SizesHaveTheLargestUnitThatDividesThem) {
  EXPECT_EQ(BytesText(1), "1 B");
  EXPECT_EQ(BytesText(4097), "4097 B");
  EXPECT_EQ(BytesText(65536), "64 KiB");
  EXPECT_EQ(BytesText(int64_t{3} << 30), "3 GiB");
  EXPECT_EQ(BytesText(int64_t{2048} << 30), "2048 GiB");
}

TEST(Progress, IsOneLineThatIsGoneInTheEnd) {
  std::ostringstream shown, silent;
  {
    Progress progress(shown, true), nothing(silent, false);
    progress.Step("copies");
    nothing.Step("copies");
  }
  EXPECT_EQ(shown.str(), "\r\033[Kcopies\r\033[K");
  EXPECT_EQ(silent.str(), "");
}

TEST(Processor, HasTheNameThatTheSystemTellsOrItsArchitecture) {
  const std::string path = testing::TempDir() + "penstock_cpuinfo";
  std::ofstream(path) << "processor\t: 0\nmodel name\t: Tester 9000 @ 3: GHz\nmodel name\t: Other\n";
  EXPECT_EQ(ProcessorName(path), "Tester 9000 @ 3: GHz");
  std::filesystem::remove(path);
  EXPECT_NE(ProcessorName(path), "");
}

}  // namespace
}  // namespace penstock::cli::measure::figures_test

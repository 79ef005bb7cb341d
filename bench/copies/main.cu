// Copies by themselves, raw CUDA against Penstock, in sections that `--parts` chooses from:
//
//   unpinned  2 GiB from and to memory that is not pinned, in one direction
//   both      the same in both directions at once
//   pieces    256 x 16 KiB, scattered on both sides, pinned and not
//   single    one pinned copy of 64 KiB to 512 MiB a run
//   trains    32 pinned copies one behind the other in a run
//   tile      a tile of a pinned image
//   peer      512 MiB from one device to another
//
// All ways of a row are measured in turn in one process; rates are bytes over the time from before the first call to
// when the host knows that all is done. Words are drawn anew for every run, and every word is checked after it
// (words.cuh). Drawing and checking leave nothing else in the caches, so but for the largest copies each way
// is run once more just before it is timed, with other words: what is measured is a program that copies all the time.
//
// Without a CUDA device the Penstock halves run on host devices, for their results only.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "peer.cuh"
#include "pieces.cuh"
#include "pinned.cuh"
#include "section.cuh"
#include "unpinned.cuh"

namespace bench {
namespace {

struct Part {
  const char* name;
  const char* title;
  bool warm;
  void (*measure)(Section&);
};
constexpr Part kParts[] = {
    {"unpinned", "2 GiB, not pinned", false, MeasureUnpinned},  // unpinned.cuh
    {"both", "2 GiB each way at once, not pinned", false, MeasureBoth},
    {"pieces", "many small pieces", true, MeasurePieces},  // pieces.cuh
    {"single", "one pinned copy", true, MeasureSingle},  // pinned.cuh
    {"trains", "32 pinned copies in a row", true, MeasureTrains},
    {"tile", "a tile of a pinned image", true, MeasureTile},
    {"peer", "from device to device", true, MeasurePeer},  // peer.cuh
};

std::vector<std::string> PartNames() {
  std::vector<std::string> names;
  for (const Part& part : kParts) names.push_back(part.name);
  return names;
}

int Main(const Options& options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  std::string device;
  if (cuda) {
    Check(cudaSetDevice(0), "choosing device 0");
    device = MakeRuntime("cuda:0").devices()[0].description;
  }
  Report all("Copies");
  bool well = true;
  for (const Part& part : kParts) {
    if (std::find(options.parts.begin(), options.parts.end(), part.name) == options.parts.end()) continue;
    Section section(options, cuda, part.name, part.title, part.warm && cuda);
    const Clock::time_point begin = Clock::now();
    section.Try(part.title, [&] { part.measure(section); });
    well = well && !section.failed();
    if (!cuda) continue;
    if (!section.skipped()) {
      section.report().Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
                            device + "; " + std::to_string(static_cast<int>(Microseconds(Clock::now() - begin) / 1e6)) +
                            " s in all. Every word is checked in every run.");
    }
    section.report().Print();
    std::printf("\n");
    std::fflush(stdout);
    all.Append(section.report());
    all.Save(options);
  }
  if (!cuda && well) all.Skip(missing, "On host devices the Penstock halves gave the right results.");
  return well ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(
        bench::ParseOptions(argc, argv, "copies", "Copies by hand and with Penstock.", bench::PartNames()));
  });
}

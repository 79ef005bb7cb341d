// A copy from one device to another: between two States with Penstock; by hand with cudaMemcpyPeerAsync and peer
// access, in a stream of either device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pinned.cuh"
#include "section.cuh"

namespace bench {

// Makes a device current as long as it lives, and device 0 afterwards.
class Current {
 public:
  explicit Current(int device) { Check(cudaSetDevice(device), "choosing a device"); }
  ~Current() { (void)cudaSetDevice(0); }
  Current(const Current&) = delete;
};

class RawPeers {
 public:
  explicit RawPeers(const Region& region) : bytes_(static_cast<size_t>(region.words()) * sizeof(uint32_t)) {
    for (const int device : {0, 1}) {
      const Current current(device);
      sides_[device] = std::make_unique<RawSide>(region);
      if (!CanAccess(device)) continue;
      const cudaError_t code = cudaDeviceEnablePeerAccess(1 - device, 0);
      if (code != cudaErrorPeerAccessAlreadyEnabled) Check(code, "enabling peer access");
      (void)cudaGetLastError();
    }
  }

  // Whether `device` reads and writes the other's memory.
  static bool CanAccess(int device) {
    int can = 0;
    Check(cudaDeviceCanAccessPeer(&can, device, 1 - device), "asking for peer access");
    return can != 0;
  }

  void Make(uint32_t salt) const {
    const Current current(0);
    sides_[0]->Make(salt);
  }
  int64_t CountWrong(uint32_t salt) const {
    const Current current(1);
    return sides_[1]->CountWrong(salt);
  }
  // In a stream of `device`.
  Sample Copy(int device) const {
    const Current current(device);
    const cudaStream_t stream = sides_[device]->stream();
    return TimeWaiting(stream, [&] {
      Check(cudaMemcpyPeerAsync(sides_[1]->data(), 1, sides_[0]->data(), 0, bytes_, stream), "copying to a peer");
    });
  }

 private:
  const size_t bytes_;
  std::unique_ptr<RawSide> sides_[2];
};

class PenstockPeers {
 public:
  PenstockPeers(ps::Runtime& runtime, const Region& region)
      : from_(runtime, region, region.width, 0), to_(runtime, region, region.width, 1) {
    ps::Graph graph("peer copy");
    graph.Copy("over", ps::Read(from_.state()), ps::Write(to_.state())).On(1);
    bound_ = Bind(Must(runtime.Compile(graph, {.slots = 1})));
  }
  void Make(uint32_t salt) { from_.Make(salt); }
  int64_t CountWrong(uint32_t salt) { return to_.CountWrong(salt); }
  Sample Run() { return bound_.Run(); }

 private:
  StateWords from_, to_;
  Bound bound_;
};

inline std::string WhyNoPeers() {
  int count = 0;
  Check(cudaGetDeviceCount(&count), "counting devices");
  return count < 2 ? "it needs two devices, and " + std::to_string(count) + " is visible" : "";
}

inline void MeasurePeer(Section& section) {
  if (section.cuda()) {
    if (const std::string why = WhyNoPeers(); !why.empty()) return section.Skip(why);
  }
  const Region line = Line((section.small() ? int64_t{1} << 20 : int64_t{512} << 20) / 4);
  const std::string what = "device to device, " + BytesText(4 * line.words());
  ps::Runtime runtime = MakeRuntime(section.two_devices());
  std::vector<Way> ways;
  const auto add = [&](Kind kind, const char* name, auto side, std::function<Sample()> time) {
    ways.push_back(section.Checked(
        kind, what, name, [&section, side] { side->Make(section.salt()); }, std::move(time),
        [&section, side] { return side->CountWrong(section.salt()); }));
  };
  if (section.cuda()) {
    const auto raw = std::make_shared<RawPeers>(line);
    for (const int device : {0, 1}) {
      if (!RawPeers::CanAccess(device)) section.report().Note("There is no peer access: copies go through the host.");
    }
    add(Kind::kRaw, "in a stream of the source", raw, [raw] { return raw->Copy(0); });
    add(Kind::kRaw, "in a stream of the target", raw, [raw] { return raw->Copy(1); });
  }
  const auto penstock = std::make_shared<PenstockPeers>(runtime, line);
  add(Kind::kPenstock, "Penstock", penstock, [penstock] { return penstock->Run(); });
  section.Run(ways, 3);
  if (!section.cuda()) return;
  const auto rate = [&](const Way& way) {
    return RateOf(SpreadOf(way, &Sample::total, 1), static_cast<double>(4 * line.words()));
  };
  section.report().CompareRates(what + "; raw: the best by hand", rate(BestRaw(ways, &Sample::total)),
                                rate(Find(ways, "Penstock")), 0.97);
  section.report().Details(what, "us", ways, 1);
}

}  // namespace bench

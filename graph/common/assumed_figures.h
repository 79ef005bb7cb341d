// What is assumed of a machine where nothing was measured, all in one place: by placement (graph/place), by estimates
// and simulations of profiles (src/analysis), and for the order of a plan (graph/passes/list_schedule.cc).
//
// Bandwidths are in GB/s (10^9 bytes a second), operations in GFLOP/s, times in microseconds.
//
// Threads: constants.
#pragma once

namespace penstock::graph::assumed {

// One figure for CUDA devices, and one for host devices.
struct Figure {
  double of_cuda, of_host;
  constexpr double Of(bool is_cuda) const { return is_cuda ? of_cuda : of_host; }
};

// A small GPU of 2018 behind PCI Express 3, and a processor of a few cores, so that a machine without a GPU, and a
// program that was recorded elsewhere, have estimates too. An estimate that stands on them says so.
inline constexpr Figure kMemory{300, 10};  // reading plus writing
inline constexpr Figure kFp32{8000, 10};
inline constexpr Figure kUpload{12, 5}, kDownload{12, 5};
inline constexpr Figure kCopyUs{10, 5};  // a copy of a few bytes between host and device
inline constexpr Figure kStreamNodeUs{5, 5}, kGraphNodeUs{2, 5};  // a kernel that does nothing
inline constexpr Figure kLaunchUs{10, 15};  // until Launch of one node returns
inline constexpr Figure kHostNodeUs{30, 50};  // a Host node that does nothing
inline constexpr double kHostCopy = 10, kHostFp32 = 10;  // of the host's threads
inline constexpr double kDeviceCopyShare = 0.5;  // of kMemory: a copy within a device reads and writes each byte

// Submission, and edges from one device to another, as measured on an H100 and an H200 (docs/explanation/simulator.md).
inline constexpr double kSubmitUs = 2;  // a node on a stream, for the thread that submits it
inline constexpr double kCrossingUs = 6;  // from the end of a node until one on another device may begin
inline constexpr double kCrossingSubmitUs = 2;  // an edge to another device, when it is submitted
inline constexpr double kPeerCopyUs = 2.3;  // a copy between devices with peer access, beside its bytes

// The bandwidth of a copy between two devices without peer access, which goes to the host and then from there. It was
// 37 GB/s where each way alone has 55.
constexpr double ThroughHost(double download, double upload) { return 1 / (1 / download + 1 / upload); }
// What such a copy takes beside its bytes if its bandwidth is `gbs`: a pair that is not faster than through the host
// has no link of its own.
constexpr double PeerCopyUs(double gbs, double through_host, double copy_us) {
  return gbs > through_host ? kPeerCopyUs : 2 * copy_us;
}

// For the order of a plan only ratios count, and they are those of a server's GPU of today: with the figures above,
// copies would seem longer than all computation. So these are figures apart.
namespace order {
inline constexpr double kLink = 50, kHost = 12, kDevice = 2000;  // of copies
inline constexpr double kLinkUs = 10, kHostUs = 20, kDeviceUs = 3;  // of copies, beside their bytes
inline constexpr double kFillUs = 3, kKernelUs = 10, kLaunchNodeUs = 20, kHostcallUs = 5, kHostNodeUs = 50;
inline constexpr double kConstructUs = 50, kBodyNodeUs = 10;  // a construct, and each node that runs in it
}  // namespace order

}  // namespace penstock::graph::assumed

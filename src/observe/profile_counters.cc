#include "src/observe/profile_counters.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

namespace penstock::observe {
namespace {

enum Engine { kUploads, kKernels, kDownloads };

// How many slices are open, of each of a few kinds.
using Open = std::array<int64_t, 3>;

// Where slices of a kind begin and end.
struct Change {
  int64_t time;
  int kind;
  int64_t by;
};
using Changes = std::vector<Change>;

void AddSlice(const ProfileSlice& slice, int kind, Changes& to, int64_t by = 1) {
  to.push_back({slice.begin, kind, by});
  to.push_back({slice.end, kind, -by});
}

// Pinned memory of a slot; more than any machine has counts as that, so that no sum is too large.
int64_t PinnedBytes(const ProfileSlice& slice) {
  constexpr int64_t kMost = int64_t{1} << 44;
  return slice.graph == nullptr ? 0 : std::min(slice.graph->slot_pinned_bytes, kMost);
}

bool IsStagedCopy(const ProfileSlice& slice) {
  return slice.node != nullptr && (slice.node->kind == "stage in" || slice.node->kind == "stage out");
}

// Calls `write(time, shown)` for each time at which `shown(open)` is another value.
template <class Shown, class Write>
void ForEachValue(Changes& changes, const Shown& shown, const Write& write) {
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
  Open open{};
  Open last = shown(open);
  for (size_t c = 0; c < changes.size(); ++c) {
    open[static_cast<size_t>(changes[c].kind)] += changes[c].by;
    if (c + 1 < changes.size() && changes[c + 1].time == changes[c].time) continue;
    const Open now = shown(open);
    if (now == last) continue;
    write(changes[c].time, now);
    last = now;
  }
}

// Writes a counter of the host's process.
void WriteCounter(const std::string& name, const std::string& series, Changes& changes, ChromeWriter& to) {
  const auto all = [](const Open& open) { return open; };
  ForEachValue(changes, all, [&](int64_t time, const Open& open) {
    to.Counter(0, name, time, "{\"" + series + "\":" + std::to_string(open[0]) + "}");
  });
}

// An engine is busy however many of its slices overlap.
void WriteEngines(int64_t pid, Changes& changes, ChromeWriter& to) {
  const auto busy = [](const Open& open) {
    return Open{std::min<int64_t>(open[0], 1), std::min<int64_t>(open[1], 1), std::min<int64_t>(open[2], 1)};
  };
  ForEachValue(changes, busy, [&](int64_t time, const Open& is) {
    to.Counter(pid, "busy", time,
               R"({"upload":)" + std::to_string(is[kUploads]) + R"(,"compute":)" + std::to_string(is[kKernels]) +
                   R"(,"download":)" + std::to_string(is[kDownloads]) + "}");
  });
}

}  // namespace

void WriteCounters(const ProfileTracks& tracks, ChromeWriter& to) {
  std::map<int64_t, Changes> slots, engines;  // of each executable; of each process of a device
  Changes pinned, staged;
  for (const ProfileSlice& slice : tracks.slices()) {
    const SpanKind kind = slice.span->kind;
    if (slice.pid == 0) {
      if (kind == SpanKind::kRun) AddSlice(slice, 0, slots[slice.span->executable]);
      if (kind == SpanKind::kRun && PinnedBytes(slice) > 0) AddSlice(slice, 0, pinned, PinnedBytes(slice));
      if (IsStagedCopy(slice)) AddSlice(slice, 0, staged);
      continue;
    }
    if (kind == SpanKind::kUpload) AddSlice(slice, kUploads, engines[slice.pid]);
    if (kind == SpanKind::kKernel) AddSlice(slice, kKernels, engines[slice.pid]);
    if (kind == SpanKind::kDownload) AddSlice(slice, kDownloads, engines[slice.pid]);
  }
  for (auto& [executable, changes] : slots) {
    WriteCounter(tracks.NameOf(executable) + ": slots", "in use", changes, to);
  }
  WriteCounter("pinned memory of runs", "bytes", pinned, to);
  WriteCounter("staged copies", "under way", staged, to);
  for (auto& [pid, changes] : engines) WriteEngines(pid, changes, to);
}

}  // namespace penstock::observe

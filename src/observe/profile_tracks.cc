#include "src/observe/profile_tracks.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <tuple>
#include <utility>

#include "src/observe/chrome_writer.h"
#include "src/observe/nested_rows.h"

namespace penstock::observe {
namespace {

// What a thread shows; in the order of threads.
struct TrackKey {
  int64_t pid;
  enum Group { kLaunches, kRuns, kSlots, kOthers } group;
  int64_t executable;  // -1: of any
  int slot, lane;
  std::string_view track;
  bool is_iteration;
};

// "worker 10" after "worker 2".
bool NumbersInOrder(std::string_view a, std::string_view b) {
  const auto digit = [](std::string_view text, size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  while (at > 0 && digit(a, at - 1)) --at;
  size_t a_end = at, b_end = at;
  while (digit(a, a_end)) ++a_end;
  while (digit(b, b_end)) ++b_end;
  if (a_end > at && b_end > at && a_end != b_end) return a_end < b_end;
  return a < b;
}

struct TracksInOrder {
  bool operator()(const TrackKey& a, const TrackKey& b) const {
    const auto before = [](const TrackKey& of) { return std::tie(of.pid, of.group, of.executable, of.slot, of.lane); };
    if (before(a) != before(b)) return before(a) < before(b);
    if (a.track != b.track) return NumbersInOrder(a.track, b.track);
    return a.is_iteration < b.is_iteration;
  }
};

// Where a track's name says what it is of the slot: "cuda:0 slot 1 upload lane 0"; npos: it is not of the slot.
size_t BehindSlot(std::string_view track, int slot) {
  if (slot < 0) return std::string_view::npos;
  const std::string of = "slot " + std::to_string(slot);
  const size_t at = track.find(of);
  if (at == std::string_view::npos || (at > 0 && track[at - 1] != ' ')) return std::string_view::npos;
  const size_t behind = at + of.size();
  return behind == track.size() || track[behind] == ' ' ? behind : std::string_view::npos;
}

// Data goes up, is computed with, and comes down.
int LaneOrder(std::string_view what) {
  if (what.starts_with(" upload")) return 1;
  if (what.starts_with(" peer")) return 2;
  if (what.starts_with(" compute")) return 3;
  if (what.starts_with(" download")) return 4;
  return 0;
}

TrackKey KeyOf(const ProfileSlice& slice) {
  const Span& span = *slice.span;
  TrackKey key{.pid = slice.pid,
               .group = TrackKey::kOthers,
               .executable = -1,
               .slot = -1,
               .lane = 0,
               .track = span.track,
               .is_iteration = slice.is_iteration};
  // A wait for a State is on the lane that waits.
  if (span.kind == SpanKind::kSubmit || (span.kind == SpanKind::kWait && span.device < 0)) {
    key.group = TrackKey::kLaunches;
    return key;
  }
  const size_t behind = BehindSlot(key.track, span.slot);
  if (behind == std::string_view::npos) return key;
  key.group = span.kind == SpanKind::kRun ? TrackKey::kRuns : TrackKey::kSlots;
  key.executable = span.executable;
  key.slot = span.slot;
  key.lane = LaneOrder(key.track.substr(behind));
  return key;
}

const Profile::Node* NodeOf(const Profile::Graph* graph, int node) {
  if (graph == nullptr || node < 0 || static_cast<size_t>(node) >= graph->nodes.size()) return nullptr;
  return &graph->nodes[static_cast<size_t>(node)];
}

// An iteration of a loop has the node of the loop, or of the construct around it, and a name of its own (trace.h).
bool IsIteration(const Span& span, const Profile::Node* node) {
  return node != nullptr && node->kind == "conditional" && span.name != node->name &&
         span.name.find(" iteration") != std::string::npos;
}

ProfileSlice SliceOf(const Span& span, const Profile::Graph* graph) {
  ProfileSlice slice{.span = &span,
                     .graph = graph,
                     .node = NodeOf(graph, span.node),
                     .is_iteration = false,
                     .begin = ChromeTime(span.begin_us),
                     .end = ChromeTime(span.end_us),
                     .pid = std::max<int64_t>(0, int64_t{span.device} + 1)};
  slice.end = std::max(slice.begin, slice.end);
  slice.is_iteration = IsIteration(span, slice.node);
  return slice;
}

// Tracks that slots of several executables share by name; each executable has threads of its own there.
class SharedTracks {
 public:
  void Add(const TrackKey& key) { executables_[Of(key)].insert(key.executable); }
  bool Has(const TrackKey& key) const { return executables_.at(Of(key)).size() > 1; }

 private:
  using Place = std::pair<int64_t, std::string_view>;
  static Place Of(const TrackKey& key) { return {key.pid, key.track}; }
  std::map<Place, std::set<int64_t>> executables_;
};

// No tid is a pid: viewers take such a thread for the main one of its process.
constexpr int64_t kFirstTid = 1000;

}  // namespace

ProfileTracks::ProfileTracks(const Profile& profile) {
  for (const Profile::Graph& graph : profile.graphs) {
    if (graphs_.emplace(graph.executable, &graph).second) ++named_[graph.name];
  }
  slices_.reserve(profile.spans.size());
  std::map<TrackKey, std::vector<ProfileSlice>, TracksInOrder> tracks;
  for (const Span& span : profile.spans) {
    const auto graph = graphs_.find(span.executable);
    const ProfileSlice slice = SliceOf(span, graph == graphs_.end() ? nullptr : graph->second);
    tracks[KeyOf(slice)].push_back(slice);
  }
  SharedTracks shared;
  for (const auto& [key, slices] : tracks) shared.Add(key);
  for (auto& [key, slices] : tracks) {
    std::string name(key.track);
    if (key.is_iteration) name += " iterations";
    if (shared.Has(key)) name += " of " + NameOf(key.executable);
    AddThreads(name, slices);
  }
}

std::string ProfileTracks::NameOf(int64_t executable) const {
  std::string number = "executable " + std::to_string(executable);
  const auto graph = graphs_.find(executable);
  if (graph == graphs_.end()) return number;
  const std::string& name = graph->second->name;
  return named_.at(name) == 1 ? name : name + ", " + number;
}

void ProfileTracks::AddThreads(const std::string& name, std::vector<ProfileSlice>& track) {
  // Of equal slices the one that was added first comes first, since their spans lie in one array.
  std::sort(track.begin(), track.end(), [](const ProfileSlice& a, const ProfileSlice& b) {
    return std::tie(a.begin, b.end, a.span) < std::tie(b.begin, a.end, b.span);
  });
  const int64_t first = kFirstTid + static_cast<int64_t>(threads_.size());
  NestedRows rows;
  for (ProfileSlice& slice : track) {
    slice.tid = first + static_cast<int64_t>(rows.RowOf(slice.begin, slice.end));
    if (slice.tid == kFirstTid + static_cast<int64_t>(threads_.size())) {
      const std::string number = slice.tid == first ? "" : " #" + std::to_string(slice.tid - first + 1);
      threads_.push_back({slice.pid, slice.tid, name + number});
    }
    slices_.push_back(slice);
  }
}

}  // namespace penstock::observe

// ProfileTracks: the spans of a profile as slices on the threads and in the processes that a viewer shows.
//
// Process 0 is the host, d + 1 is device d. A track is a thread; what overlaps partly on it goes to more threads,
// "<track> #2". Tracks of the slots of several executables are apart, as are the iterations of loops that a device
// decides. Threads are numbered in the order in which they are to be shown: launches, runs, and then each executable's
// slots with their lanes.
//
// Ownership: borrows the profile.
// Threads:   plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/profile.h"

namespace penstock::observe {

// A span where it is shown; times in nanoseconds.
struct ProfileSlice {
  const Span* span;
  const Profile::Graph* graph;  // that it belongs to; null: unknown
  const Profile::Node* node;  // of the graph; null: none, or unknown
  bool is_iteration;  // of a loop that the device decides
  int64_t begin, end;
  int64_t pid = 0, tid = 0;
};

struct ProfileThread {
  int64_t pid, tid;
  std::string name;
};

class ProfileTracks {
 public:
  explicit ProfileTracks(const Profile& profile);

  // By track, then by begin, an outer slice before those that it contains.
  const std::vector<ProfileSlice>& slices() const { return slices_; }
  // In order of pid and tid.
  const std::vector<ProfileThread>& threads() const { return threads_; }
  // What tells an executable from others: its graph's name, with its number if others have that name too.
  std::string NameOf(int64_t executable) const;

 private:
  void AddThreads(const std::string& name, std::vector<ProfileSlice>& track);

  std::map<int64_t, const Profile::Graph*> graphs_;
  std::map<std::string_view, int> named_;  // how many graphs have the name
  std::vector<ProfileSlice> slices_;
  std::vector<ProfileThread> threads_;
};

}  // namespace penstock::observe

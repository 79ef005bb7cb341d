// Transfers of random graphs by boxes, byte by byte: every access finds the version of each byte that the graph means,
// home has the last ones, and each place is given as many bytes as it needs when every byte is copied to it as late as
// possible and only if it is not there. All of this is found without boxes, from sets of places a byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/plan/plan_names.h"
#include "tests/graph/oracle/draft_after.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/random_seeds.h"

namespace penstock::graph::random_transfers_test {
namespace {

constexpr int kDevices = 3, kPlaces = 2 + kDevices, kBound = 0, kPinnedMemory = 1, kFirstDevice = 2;
constexpr int kNothing = -1;  // the version of a byte that nobody wrote

// A few numbers that say what an access covers: in bytes, of dense rows at the largest extent.
struct Bytes {
  std::vector<int32_t> touched;
  bool exact = true;
};

struct RandomCase {
  ModelBuilder builder;
  PlanOptions options = Devices(kDevices);
  std::vector<std::vector<Bytes>> bytes;  // (node, access)

  const Model& model() const { return builder.model; }
  int32_t SizeOf(int32_t b) const {
    int64_t size = model().buffers[b].type.size;
    for (int i = 0; i < model().buffers[b].extent.rank; ++i) size *= model().buffers[b].extent.dims[i].value;
    return static_cast<int32_t>(size);
  }
  bool Outlives(int32_t b) const { return model().buffers[b].role != BufferRole::kInternal; }
};

// Calls `f` with each byte of a part that is given by dimension: element offsets and sizes.
template <class F>
void ForBytes(const BufferDecl& buffer, const std::array<int64_t, 3>& lo, const std::array<int64_t, 3>& size, F&& f) {
  std::array<int64_t, 3> extent{1, 1, 1};
  for (int i = 0; i < buffer.extent.rank; ++i) extent[3 - buffer.extent.rank + i] = buffer.extent.dims[i].value;
  const int64_t element = buffer.type.size;
  for (int64_t d = lo[0]; d < lo[0] + size[0]; ++d) {
    for (int64_t h = lo[1]; h < lo[1] + size[1]; ++h) {
      for (int64_t w = lo[2] * element; w < (lo[2] + size[2]) * element; ++w) {
        f(static_cast<int32_t>((d * extent[1] + h) * extent[2] * element + w));
      }
    }
  }
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomCase Make() {
    out_.options.default_device = Below(kDevices);
    out_.options.ring_from_bytes = Chance(3) ? 0 : 1 << 20;
    const int buffers = 1 + Below(4), nodes = 2 + Below(14);
    for (int b = 0; b < buffers; ++b) AddBuffer(b);
    for (int n = 0; n < nodes; ++n) AddNode("n" + std::to_string(n));
    for (int b = 0; b < buffers; ++b) {
      const bool untouched = std::count(written_[b].begin(), written_[b].end(), true) == 0;
      if (out_.model().buffers[b].role == BufferRole::kOutput && untouched) AddFinish(b);
    }
    return std::move(out_);
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int one_in) { return Below(one_in) == 0; }

  void AddBuffer(int b) {
    static const Extent kExtents[] = {{12}, {5, 4}, {6, 6}, {3, 4, 5}, {2, 2, 2}};
    static constexpr uint32_t kElementBytes[] = {1, 2, 4};
    static constexpr BufferRole kRoles[] = {BufferRole::kInput, BufferRole::kOutput, BufferRole::kInOut,
                                            BufferRole::kInternal, BufferRole::kState};
    const Extent extent = kExtents[Below(5)];
    const BufferRole role = kRoles[Below(5)];
    const std::string name = "b" + std::to_string(b);
    if (role == BufferRole::kState) {
      out_.builder.State(name, extent, Below(kDevices));
    } else {
      static constexpr Where kWheres[] = {kHost, kHost, kPinned, kSlot, kDevice};
      const Where where = IsBound(role) ? kWheres[Below(5)] : Chance(4) ? kPinned : kDevice;
      out_.builder.Buffer(name, extent, role, where, kElementBytes[Below(3)]);
    }
    const bool has = role != BufferRole::kOutput && role != BufferRole::kInternal;
    written_.emplace_back(static_cast<size_t>(out_.SizeOf(b)), has);
  }

  // A box of buffer `b`, mostly one of constants.
  std::pair<Box, Bytes> RandomBox(int b) {
    const BufferDecl& buffer = out_.model().buffers[b];
    const int rank = buffer.extent.rank;
    Bytes bytes;
    std::array<int64_t, 3> lo{0, 0, 0}, size{1, 1, 1};
    Extent offsets = buffer.extent, sizes = buffer.extent;
    bool anywhere = false;
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<size_t>(3 - rank + i);
      const auto extent = static_cast<int>(buffer.extent.dims[i].value);
      size[at] = Chance(3) ? extent : Chance(20) ? 0 : 1 + Below(extent);
      lo[at] = Below(extent - static_cast<int>(size[at]) + 1);
      offsets.dims[i] = Dim(lo[at]);
      sizes.dims[i] = Dim(size[at]);
      if (size[at] > 0 && Chance(12)) sizes.dims[i] = NewParam(size[at]);
      if (Chance(40)) offsets.dims[i] = NewParam(extent);
      anywhere = anywhere || !offsets.dims[i].is_constant();
      bytes.exact = bytes.exact && sizes.dims[i].is_constant();
    }
    if (anywhere) {
      bytes.exact = false;
      lo = {0, 0, 0};
      for (int i = 0; i < rank; ++i) size[static_cast<size_t>(3 - rank + i)] = buffer.extent.dims[i].value;
    }
    ForBytes(buffer, lo, size, [&](int32_t byte) { bytes.touched.push_back(byte); });
    return {Slice(offsets, sizes), bytes};
  }
  Dim NewParam(int64_t most) {
    return out_.builder.ParamDim(out_.builder.Param("p" + std::to_string(out_.model().params.size()), most));
  }

  void AddNode(const std::string& name) {
    std::vector<AccessDecl> accesses;
    std::vector<Bytes> touched;
    for (int count = 1 + Below(3); count > 0; --count) AddAccess(accesses, touched);
    const bool host = Chance(4);
    const int32_t node = host ? out_.builder.Host(name) : out_.builder.For(name);
    if (!host) out_.builder.node(node).device = Below(kDevices);
    Finish(node, std::move(accesses), std::move(touched));
  }

  void AddAccess(std::vector<AccessDecl>& accesses, std::vector<Bytes>& touched) {
    const int b = Below(static_cast<int>(out_.model().buffers.size()));
    const BufferRole role = out_.model().buffers[b].role;
    auto [box, bytes] = RandomBox(b);
    static constexpr AccessMode kModes[] = {AccessMode::kRead,      AccessMode::kRead,      AccessMode::kWrite,
                                            AccessMode::kReadWrite, AccessMode::kWriteSome, AccessMode::kScratch};
    AccessMode mode = kModes[Below(6)];
    const bool readable = std::all_of(bytes.touched.begin(), bytes.touched.end(),
                                      [&](int32_t byte) { return written_[b][static_cast<size_t>(byte)]; });
    if (mode == AccessMode::kScratch && (role != BufferRole::kInternal || !bytes.exact)) mode = AccessMode::kWrite;
    if (Reads(mode) && !readable) mode = AccessMode::kWrite;
    if (role == BufferRole::kInput) mode = AccessMode::kRead;
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i].buffer != b || (mode == AccessMode::kRead && accesses[i].mode == AccessMode::kRead)) continue;
      for (const int32_t byte : touched[i].touched) {
        if (std::count(bytes.touched.begin(), bytes.touched.end(), byte) > 0) return;
      }
    }
    accesses.push_back({b, ModelBuilder::kSerial, mode, false, box});
    touched.push_back(std::move(bytes));
  }

  // All of an Output that no node has written for sure.
  void AddFinish(int b) {
    Bytes all;
    for (int32_t byte = 0; byte < out_.SizeOf(b); ++byte) all.touched.push_back(byte);
    Finish(out_.builder.For("finish" + std::to_string(b)), {{b, ModelBuilder::kSerial, AccessMode::kWrite, false, {}}},
           {all});
  }

  void Finish(int32_t node, std::vector<AccessDecl> accesses, std::vector<Bytes> touched) {
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i].mode == AccessMode::kRead) continue;
      const bool scratch = accesses[i].mode == AccessMode::kScratch;
      for (const int32_t byte : touched[i].touched) {
        if (touched[i].exact) written_[accesses[i].buffer][static_cast<size_t>(byte)] = !scratch;
      }
    }
    out_.builder.node(node).accesses = std::move(accesses);
    out_.bytes.push_back(std::move(touched));
  }

  std::mt19937_64 random_;
  RandomCase out_;
  std::vector<std::vector<bool>> written_;  // bytes of each buffer that a read may count on
};

// What each access must find, and the versions at the end: the nodes one after another as declared.
struct Versions {
  std::vector<std::vector<std::vector<int>>> found;  // (node, access, byte of the access)
  std::vector<std::vector<int>> last;  // (buffer, byte)
};

class Comparison {
 public:
  Comparison(const RandomCase& c, const Draft& draft) : case_(c), draft_(draft) {}

  // What is wrong, or nothing.
  std::string Check() {
    LayOut();
    FindVersions();
    for (const Step& step : draft_.ordered.steps) {
      if (!problem_.empty()) return problem_;
      if (step.follows) continue;  // the other form of the copy before
      if (step.decl < 0) {
        CopyPart(step);
      } else {
        RunNode(step);
      }
    }
    for (size_t b = 0; b < now_.size(); ++b) BringHome(static_cast<int32_t>(b));
    if (problem_.empty() && copied_ != least_) Say("other bytes are copied than needed", -1);
    return problem_.empty() ? "" : problem_ + Counts();
  }
  int64_t parts() const { return parts_; }

 private:
  static int PlaceOf(const Instance& i) {
    return i.device >= 0 ? kFirstDevice + i.device : i.space == Space::kPinned ? kPinnedMemory : kBound;
  }
  const BufferDecl& decl(int32_t b) const { return case_.model().buffers[b]; }
  bool IsHostBound(int32_t b) const {
    return IsBound(decl(b).role) && (decl(b).where == kHost || decl(b).where == kPinned);
  }
  bool Rings(int32_t b) const { return decl(b).where == kHost && case_.options.ring_from_bytes == 0; }
  int HomeOf(int32_t b) const {
    if (draft_.placed.home[b] >= 0) return kFirstDevice + draft_.placed.home[b];
    return IsHostBound(b) ? kBound : kPinnedMemory;
  }
  // What a copy between host and device uses.
  int CopyPlaceOf(int32_t b) const {
    return IsHostBound(b) && (decl(b).where == kPinned || Rings(b)) ? kBound : kPinnedMemory;
  }
  // A partly written Output begins with what was bound.
  bool Begins(int32_t b) const {
    const BufferRole role = decl(b).role;
    return (role != BufferRole::kOutput && role != BufferRole::kInternal) || draft_.checked.partial_output[b];
  }

  void LayOut() {
    for (int32_t b = 0; b < static_cast<int32_t>(case_.model().buffers.size()); ++b) {
      const auto size = static_cast<size_t>(case_.SizeOf(b));
      const int version = Begins(b) ? 0 : kNothing;
      now_.emplace_back(size, version);
      places_.emplace_back(size);
      touched_.push_back(false);
      if (version == 0) {
        for (auto& places : places_.back()) places[static_cast<size_t>(HomeOf(b))] = true;
      }
    }
    for (const Instance& i : draft_.ordered.instances) {
      const bool home = PlaceOf(i) == HomeOf(i.buffer) && Begins(i.buffer);
      memory_.emplace_back(static_cast<size_t>(case_.SizeOf(i.buffer)), home ? 0 : kNothing);
    }
  }

  void FindVersions() {
    std::vector<std::vector<int>> now = now_;
    for (size_t n = 0; n < case_.bytes.size(); ++n) {
      const std::vector<AccessDecl>& accesses = case_.model().nodes[n].accesses;
      versions_.found.emplace_back();
      for (size_t i = 0; i < accesses.size(); ++i) {
        versions_.found.back().emplace_back();
        for (const int32_t byte : case_.bytes[n][i].touched) {
          versions_.found.back().back().push_back(now[accesses[i].buffer][static_cast<size_t>(byte)]);
        }
      }
      for (size_t i = 0; i < accesses.size(); ++i) {
        if (accesses[i].mode == AccessMode::kRead) continue;
        for (const int32_t byte : case_.bytes[n][i].touched) {
          now[accesses[i].buffer][static_cast<size_t>(byte)] = VersionBy(static_cast<int>(n), accesses[i].mode);
        }
      }
    }
    versions_.last = now;
  }
  static int VersionBy(int node, AccessMode mode) { return mode == AccessMode::kScratch ? kNothing : node + 1; }

  void CopyPart(const Step& step) {
    const BufferId b = draft_.ordered.instances[step.src].buffer;
    const BufferDecl& buffer = decl(b);
    const int to = PlaceOf(draft_.ordered.instances[step.dst]);
    std::array<int64_t, 3> lo{0, 0, 0}, size{1, 1, 1};
    for (int i = 0; i < buffer.extent.rank; ++i)
      size[static_cast<size_t>(3 - buffer.extent.rank + i)] = buffer.extent.dims[i].value;
    if (step.part >= 0) {
      ++parts_;
      const Region& part = draft_.ordered.parts[step.part];
      const std::array<int64_t, 3> unit{1, 1, buffer.type.size};
      for (size_t d = 0; d < 3; ++d) {
        if (part.lo[d] % unit[d] != 0 || part.hi[d] % unit[d] != 0) Say("a part cuts elements", -1);
        lo[d] = part.lo[d] / unit[d];
        size[d] = (part.hi[d] - part.lo[d]) / unit[d];
      }
    }
    ForBytes(buffer, lo, size, [&](int32_t byte) {
      const auto at = static_cast<size_t>(byte);
      const int version = memory_[step.src][at];
      if (version == kNothing || version != now_[b][at]) Say("what is copied is not current", b);
      if (memory_[step.dst][at] == version) Say("what is copied is there already", b);
      memory_[step.dst][at] = version;
      ++copied_[{b, to}];
    });
  }

  void RunNode(const Step& step) {
    const NodeDecl& node = case_.model().nodes[step.decl];
    const Use* const uses = draft_.ordered.UsesOf(step).data();
    const int on = step.device >= 0 ? kFirstDevice + step.device : -1;
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      const AccessDecl& access = node.accesses[i];
      const Bytes& bytes = case_.bytes[step.decl][i];
      if (!Needs(access, bytes)) continue;
      const int place = on >= 0 ? on : IsHostBound(access.buffer) ? kBound : kPinnedMemory;
      for (size_t k = 0; k < bytes.touched.size(); ++k) {
        const auto at = static_cast<size_t>(bytes.touched[k]);
        const int wanted = versions_.found[step.decl][i][k];
        if (wanted != kNothing && memory_[uses[i].instance][at] != wanted)
          Say("a node finds another version", access.buffer);
        Bring(access.buffer, at, place);
      }
    }
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      const AccessDecl& access = node.accesses[i];
      if (access.mode == AccessMode::kRead) continue;
      touched_[access.buffer] = true;
      const int place = on >= 0 ? on : IsHostBound(access.buffer) ? kBound : kPinnedMemory;
      for (const int32_t byte : case_.bytes[step.decl][i].touched) {
        const auto at = static_cast<size_t>(byte);
        const int version = VersionBy(step.decl, access.mode);
        memory_[uses[i].instance][at] = version;
        now_[access.buffer][at] = version;
        places_[access.buffer][at].fill(false);
        places_[access.buffer][at][static_cast<size_t>(place)] = version != kNothing;
      }
    }
  }

  // Whether contents must be there: what is read, and what a write may leave as it was.
  bool Needs(const AccessDecl& access, const Bytes& bytes) const {
    if (access.mode == AccessMode::kScratch) return false;
    if (access.mode == AccessMode::kWrite) return !bytes.exact;
    if (access.mode == AccessMode::kWriteSome) return !bytes.exact || case_.Outlives(access.buffer);
    return true;
  }

  // The least that is copied for a byte that is needed at a place: from host memory if it is there, else from a device,
  // and on the host through pinned memory where the buffer is staged.
  void Bring(int32_t b, size_t byte, int place) {
    std::array<bool, kPlaces>& at = places_[b][byte];
    if (at[static_cast<size_t>(place)] || std::count(at.begin(), at.end(), true) == 0) return;
    const int through = CopyPlaceOf(b);
    const bool on_host = at[kBound] || at[kPinnedMemory];
    if (place >= kFirstDevice ? on_host : place != through) Bring(b, byte, through);
    at[static_cast<size_t>(place)] = true;
    ++least_[{b, place}];
  }

  void BringHome(int32_t b) {
    if (!case_.Outlives(b) || !touched_[b]) return;
    const auto home = std::find_if(draft_.ordered.instances.begin(), draft_.ordered.instances.end(),
                                   [&](const Instance& i) { return i.buffer == b && PlaceOf(i) == HomeOf(b); });
    for (size_t byte = 0; byte < now_[b].size(); ++byte) {
      Bring(b, byte, HomeOf(b));
      const bool there = home != draft_.ordered.instances.end() &&
                         memory_[home - draft_.ordered.instances.begin()][byte] == versions_.last[b][byte];
      // A node that writes no byte in the end makes no copy, and so no instance at home.
      if (!there && versions_.last[b][byte] > 0) Say("home lacks what a node has written", b);
    }
  }

  void Say(const std::string& what, int32_t b) {
    if (problem_.empty()) problem_ = what + (b >= 0 ? ", of " + std::string(decl(b).name.view()) : "");
  }
  std::string Counts() const {
    std::string text = "\n(buffer, place): bytes copied, needed";
    for (int32_t b = 0; b < static_cast<int32_t>(case_.model().buffers.size()); ++b) {
      for (int p = 0; p < kPlaces; ++p) {
        const auto count = [&](const std::map<std::pair<int32_t, int>, int64_t>& of) {
          const auto found = of.find({b, p});
          return std::to_string(found == of.end() ? 0 : found->second);
        };
        text += "\n  (" + std::string(decl(b).name.view()) + ", " + std::to_string(p) + "): " + count(copied_) + ", " +
                count(least_);
      }
    }
    return text;
  }

  const RandomCase& case_;
  const Draft& draft_;
  Versions versions_;
  std::vector<std::vector<int>> now_;  // (buffer, byte): the version that counts now
  std::vector<std::vector<std::array<bool, kPlaces>>> places_;  // (buffer, byte): where it would be, copied least
  std::vector<std::vector<int>> memory_;  // (instance, byte): the version
  std::vector<bool> touched_;  // buffers that some node writes
  std::map<std::pair<int32_t, int>, int64_t> copied_, least_;  // (buffer, place): bytes
  int64_t parts_ = 0;
  std::string problem_;
};

class RandomTransfers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shard, RandomTransfers, testing::Range(0, kShards));

TEST_P(RandomTransfers, CopyEachByteOnlyToWhereItIsNeededAndNotYet) {
  const Seeds seeds = SeedsOf(GetParam(), 5);
  int64_t parts = 0;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const RandomCase c = Generator(seed).Make();
    const Draft draft = DraftAfter("InsertTransfers", c.model(), c.options);
    ASSERT_TRUE(draft.findings.mistakes.empty()) << Rerun(seed) << draft.findings.mistakes[0].text;
    Comparison comparison(c, draft);
    ASSERT_EQ(comparison.Check(), "") << Rerun(seed) << PrintText(PlanOf(c.builder, c.options), c.model());
    parts += comparison.parts();
  }
  std::cout << parts << " parts copied\n";
  if (seeds.many()) {
    EXPECT_GT(parts, seeds.count());
  }
}

}  // namespace
}  // namespace penstock::graph::random_transfers_test

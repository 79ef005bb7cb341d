// Whether two profiles say the same, member by member; and whose member it is that differs. Times and other doubles are
// equal if they agree to the thousandth that files have.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>

#include "penstock/profile.h"

namespace penstock {

inline void ExpectEqual(double a, double b) { EXPECT_NEAR(a, b, 0.001); }

inline void ExpectEqual(const Device& a, const Device& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.is_cuda, b.is_cuda);
  EXPECT_EQ(a.memory_bytes, b.memory_bytes);
}

inline void ExpectEqual(const Profile::Lane& a, const Profile::Lane& b) {
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.kind, b.kind);
}

inline void ExpectEqual(const Profile::Node& a, const Profile::Node& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.where, b.where);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.lane, b.lane);
  EXPECT_EQ(a.after, b.after);
  EXPECT_EQ(a.read_bytes, b.read_bytes);
  EXPECT_EQ(a.written_bytes, b.written_bytes);
  EXPECT_NEAR(a.flops, b.flops, 0.001);
}

inline void ExpectEqual(const SubmissionReport::Loop& a, const SubmissionReport::Loop& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.iterations, b.iterations);
  EXPECT_NEAR(a.iteration_us, b.iteration_us, 0.001);
}

template <class T>
void ExpectEqualLists(const T& a, const T& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectEqual(a[i], b[i]);
  }
}

inline void ExpectEqual(const SubmissionReport& a, const SubmissionReport& b) {
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_NEAR(a.stream_us, b.stream_us, 0.001);
  EXPECT_NEAR(a.graph_us, b.graph_us, 0.001);
  EXPECT_EQ(a.notes, b.notes);
  EXPECT_EQ(a.graphs, b.graphs);
  EXPECT_EQ(a.graph_nodes, b.graph_nodes);
  EXPECT_EQ(a.regions, b.regions);
  EXPECT_EQ(a.region_nodes, b.region_nodes);
  EXPECT_EQ(a.graph_launches, b.graph_launches);
  EXPECT_EQ(a.nodes_set, b.nodes_set);
  EXPECT_EQ(a.nodes_switched, b.nodes_switched);
  EXPECT_EQ(a.captures, b.captures);
  EXPECT_EQ(a.refreshes, b.refreshes);
  ExpectEqualLists(a.loops, b.loops);
  EXPECT_NEAR(a.instantiating_us, b.instantiating_us, 0.001);
  EXPECT_NEAR(a.capturing_us, b.capturing_us, 0.001);
}

inline void ExpectEqual(const PlacementReport::Candidate& a, const PlacementReport::Candidate& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.taken, b.taken);
  EXPECT_NEAR(a.makespan_us, b.makespan_us, 0.001);
  EXPECT_NEAR(a.gain, b.gain, 0.001);
  ExpectEqualLists(a.work_us, b.work_us);
  EXPECT_EQ(a.between_bytes, b.between_bytes);
  EXPECT_EQ(a.host_bytes, b.host_bytes);
  EXPECT_EQ(a.why, b.why);
}

inline void ExpectEqual(const Profile::Graph& a, const Profile::Graph& b) {
  EXPECT_EQ(a.executable, b.executable);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.where, b.where);
  EXPECT_EQ(a.slots, b.slots);
  EXPECT_EQ(a.slot_device_bytes, b.slot_device_bytes);
  EXPECT_EQ(a.slot_pinned_bytes, b.slot_pinned_bytes);
  ExpectEqualLists(a.lanes, b.lanes);
  ExpectEqualLists(a.nodes, b.nodes);
  EXPECT_EQ(a.launches, b.launches);
  ExpectEqual(a.report, b.report);
  ExpectEqualLists(a.placement, b.placement);
}

inline void ExpectEqual(const Span& a, const Span& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.track, b.track);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_NEAR(a.begin_us, b.begin_us, 0.001);
  EXPECT_NEAR(a.end_us, b.end_us, 0.001);
  EXPECT_EQ(a.run, b.run);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.executable, b.executable);
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.slot, b.slot);
}

inline void ExpectEqual(const StageStats& a, const StageStats& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_EQ(a.waiting, b.waiting);
  EXPECT_EQ(a.working, b.working);
  EXPECT_EQ(a.done, b.done);
  EXPECT_EQ(a.failed, b.failed);
  EXPECT_NEAR(a.busy, b.busy, 0.001);
}

inline void ExpectEqual(const BusyShare& a, const BusyShare& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_NEAR(a.busy, b.busy, 0.001);
}

inline void ExpectEqual(const Profile::Pipeline& a, const Profile::Pipeline& b) {
  EXPECT_NEAR(a.begin_us, b.begin_us, 0.001);
  EXPECT_NEAR(a.end_us, b.end_us, 0.001);
  ExpectEqualLists(a.stats.stages, b.stats.stages);
  ExpectEqualLists(a.stats.engines, b.stats.engines);
  ExpectEqualLists(a.stats.threads, b.stats.threads);
  EXPECT_EQ(a.stats.accepted, b.stats.accepted);
  EXPECT_EQ(a.stats.delivered, b.stats.delivered);
  EXPECT_EQ(a.stats.dropped, b.stats.dropped);
  EXPECT_EQ(a.stats.refused, b.stats.refused);
  EXPECT_EQ(a.stats.failed, b.stats.failed);
  EXPECT_EQ(a.stats.retries, b.stats.retries);
  EXPECT_EQ(a.stats.inside, b.stats.inside);
  EXPECT_EQ(a.stats.ready, b.stats.ready);
  EXPECT_EQ(a.stats.window, b.stats.window);
  EXPECT_EQ(a.stats.bottleneck, b.stats.bottleneck);
}

inline void ExpectEqual(const Profile& a, const Profile& b) {
  EXPECT_EQ(a.open, b.open);
  ExpectEqualLists(a.devices, b.devices);
  ExpectEqualLists(a.graphs, b.graphs);
  ExpectEqualLists(a.pipelines, b.pipelines);
  ExpectEqualLists(a.spans, b.spans);
  EXPECT_EQ(a.lost_spans, b.lost_spans);
  EXPECT_EQ(a.lost_graphs, b.lost_graphs);
  EXPECT_NEAR(a.length_us, b.length_us, 0.001);
}

}  // namespace penstock

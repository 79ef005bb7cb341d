// One graph with every kind of mistake a declaration can hold: Compile answers with one Status, a line for each, and
// the whole text is compared.
#include <gtest/gtest.h>

#include <string>

#include "graph/plan/plan.h"
#include "penstock/graph.h"
#include "tests/support/status.h"

namespace penstock::graph::golden_errors_test {
namespace {

struct Nothing {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const int32_t*, int32_t*) const {}
};
struct Plane {
  PENSTOCK_HOST_DEVICE void operator()(Index2, View<int32_t>) const {}
};
struct Tile {
  PENSTOCK_HOST_DEVICE void operator()(const Block&, int32_t*) const {}
};
void Kernel(int, int32_t*) {}

Name At(const char* name, int line) { return Name(name, "dir/bad.cc", line); }

PlanOptions TwoHosts() {
  PlanOptions options;
  options.devices = {{"host:0", false, 0, int64_t{1} << 30}, {"host:1", false, 0, int64_t{1} << 30}};
  return options;
}

Graph EveryMistake() {
  Graph other("other");
  auto foreign_buffer = other.Input<int32_t>("b", 4);
  auto foreign_param = other.Param<int>("p", AtMost(4));

  Graph g(At("bad", 1));
  auto p = g.Param<float>(At("p", 10));
  g.Param<int>(At("p", 11));
  g.Param<int>(At("", 12));
  g.Param<float>(At("real", 13), AtMost(3));
  g.Param<int>(At("below", 14), AtMost(-1));
  auto open = g.Param<int>(At("open", 15));

  auto x = g.Input<int32_t>(At("x", 20), 8);
  g.Input<int32_t>(At("x", 21), 8);
  g.Input<int32_t>(At("", 22), 8);
  auto t = g.Buffer<int32_t>(At("t", 25), 8, kHost);
  g.Buffer<int32_t>(At("negative", 26), -2);
  g.Buffer<int32_t>(At("unbounded", 27), open);
  g.Buffer<int32_t>(At("foreign", 28), foreign_param);
  g.Buffer<double>(At("huge", 29), {int64_t{1} << 40, int64_t{1} << 30});
  auto small = g.Buffer<int32_t>(At("small", 30), 4);
  auto y = g.Output<int32_t>(At("y", 31), 8);
  g.Output<int32_t>(At("idle", 32), 8);
  auto plane = g.Buffer<int32_t>(At("plane", 33), 8);

  const NodeRef first = g.ParallelFor(At("first", 40), 8, Nothing{}, Read(x), Write(y));
  g.ParallelFor(At("first", 41), 8, Nothing{}, Read(x), Write(y));
  g.ParallelFor(At("", 42), 8, Nothing{}, Read(x), Write(y));
  g.ParallelFor(At("unset", 43), 8, Nothing{}, Read(BufferHandle<int32_t>()), Write(y));
  g.ParallelFor(At("abroad", 44), 8, Nothing{}, Read(foreign_buffer), Write(y));
  g.Host(At("value", 45), [](int, std::span<int32_t>) {}, foreign_param, ReadWrite(y));
  g.Host(At("crowd", 46), [](float, std::span<int32_t>) {}, p, ReadWrite(y)).Concurrency(0);
  g.ParallelFor(At("far", 47), 8, Nothing{}, Read(x), Write(y)).On(5);
  g.Copy(At("short", 48), x, small);
  g.ParallelFor(At("flat", 49), 8, Plane{}, Write(plane));
  g.Kernel(At("kernel", 50), Kernel, Threads(8, 2048), 8, ReadWrite(y));
  g.Launch(At("library", 51), [](LaunchContext&, int32_t*) {}, ReadWrite(y));
  g.ParallelFor(At("into input", 52), 8, Nothing{}, Read(y), Write(x));
  g.ParallelFor(At("too early", 53), 8, Nothing{}, Read(t), Write(y));
  NodeRef late = g.ParallelFor(At("late", 54), 8, Nothing{}, Read(x), Write(y));
  g.Task(At("tile", 55), {.threads = 2048, .shared_bytes = 240'000}, Tile{}, ReadWrite(y));
  g.Task(At("no tile", 56), {.threads = 0}, Tile{}, ReadWrite(y));
  NodeRef early = first;
  early.After(late);
  return g;
}

TEST(GoldenErrors, EveryMistakeOfAGraphIsALineOfOneStatus) {
  const Graph graph = EveryMistake();
  const absl::Status status = MakePlan(graph.model(), TwoHosts()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Text(status), R"(graph 'bad': 30 mistakes:
  graph 'bad' param '' (bad.cc:12): has no name; messages and traces call everything by its name; give it one
  graph 'bad' param 'p' (bad.cc:10): declared 2 times: bad.cc:10 and bad.cc:11; names are unique among the params of a graph; rename all but one
  graph 'bad' param 'real' (bad.cc:13): has AtMost, but is not an integer; only integers have a maximum; remove AtMost or use an integer type
  graph 'bad' param 'below' (bad.cc:14): AtMost(-1) is negative; such a parameter counts elements; give 0 or more
  graph 'bad' buffer '' (bad.cc:22): has no name; messages and traces call everything by its name; give it one
  graph 'bad' buffer 'x' (bad.cc:20): declared 2 times: bad.cc:20 and bad.cc:21; names are unique among the buffers of a graph; rename all but one
  graph 'bad' buffer 't' (bad.cc:25): a Buffer lives on a device or in pinned memory; declare it kDevice or kPinned
  graph 'bad' buffer 'negative' (bad.cc:26): dimension 0 is -2; it is a count; give 0 or more
  graph 'bad' buffer 'unbounded' (bad.cc:27): dimension 0 is 'open' (bad.cc:15), which has no maximum; memory is planned before its value is known; declare it with AtMost
  graph 'bad' buffer 'foreign' (bad.cc:28): dimension 0 is a parameter of another graph; a handle is good in the graph that made it; declare the parameter in this graph
  graph 'bad' buffer 'huge' (bad.cc:29): 1099511627776 x 1073741824 elements of 8 bytes are more than 2^62 bytes; no device holds that; make a dimension or its AtMost smaller
  graph 'bad' node '' (bad.cc:42): has no name; messages and traces call everything by its name; give it one
  graph 'bad' node 'first' (bad.cc:40): declared 2 times: bad.cc:40 and bad.cc:41; names are unique among the nodes of a graph; rename all but one
  graph 'bad' node 'unset' (bad.cc:43): access 0 is to no buffer; its handle was never set; declare the buffer in this graph
  graph 'bad' node 'abroad' (bad.cc:44): access 0 is to a buffer of another graph; a handle is good in the graph that made it; declare the buffer in this graph
  graph 'bad' node 'value' (bad.cc:45): argument 0 is a parameter of another graph; a handle is good in the graph that made it; declare the parameter in this graph
  graph 'bad' node 'crowd' (bad.cc:46): Concurrency(0): at least one run at a time must be able to use the callable; give 1 or more
  graph 'bad' node 'far' (bad.cc:47): pinned to device 5; the runtime has 0 (host:0), 1 (host:1); pin it to one of these
  graph 'bad' node 'short' (bad.cc:48): copies 'x' (bad.cc:20) to 'small' (bad.cc:30), which has another extent ({8} and {4}); a Copy takes and writes boxes of one shape; declare both with the same constants and parameters
  graph 'bad' node 'flat' (bad.cc:49): the functor takes a 2-D index and the extent is 1-D; it is called with an index of the extent; take int64_t, Index2 or Index3 to match
  graph 'bad' node 'kernel' (bad.cc:50) on host:0: its blocks have 2048 x 1 x 1 threads; a block has 1 to 1024; use fewer, or more blocks
  graph 'bad' node 'kernel' (bad.cc:50) on host:0: a Kernel runs on CUDA devices only; this is a host device and the node has no host fallback for it; give it one with .HostFallback(f), or pin it to a CUDA device
  graph 'bad' node 'library' (bad.cc:51) on host:0: a Launch submits to a CUDA stream; this is a host device and the node has no host fallback for it; give it one with .HostFallback(f), or pin it to a CUDA device
  graph 'bad' node 'tile' (bad.cc:55) on host:0: its block has 2048 threads; a block has 1 to 1024; name so many in TaskOptions::threads
  graph 'bad' node 'tile' (bad.cc:55) on host:0: its block takes 240000 bytes of shared memory; a block has at most 232448; use less
  graph 'bad' node 'no tile' (bad.cc:56) on host:0: its block has 0 threads; a block has 1 to 1024; name so many in TaskOptions::threads
  graph 'bad': nodes wait for each other: 'first' (bad.cc:40) after 'late' (bad.cc:54) after 'into input' (bad.cc:52) after 'first' (bad.cc:40); none of them could start; remove an After
  graph 'bad' node 'into input' (bad.cc:52): writes 'x' (bad.cc:20), which is an Input; bound Inputs are never changed; declare it with InOut
  graph 'bad' node 'too early' (bad.cc:53): reads 't' (bad.cc:25) before any node has written it; its contents would be undefined; write it first, say Write where this node writes all of it or WriteSome where it only writes some of it, or declare it with Input or InOut
  graph 'bad' buffer 'idle' (bad.cc:32): an Output that no node writes; its memory would come back untouched; write it or remove it)");
}

// One mistake needs no list.
TEST(GoldenErrors, OneMistakeStandsAlone) {
  Graph g("one");
  g.Output<int32_t>(At("y", 3), 8);
  EXPECT_EQ(Text(MakePlan(g.model(), TwoHosts()).status()),
            "graph 'one' buffer 'y' (bad.cc:3): an Output that no node writes; its memory would come back untouched; "
            "write it or remove it");
}

}  // namespace
}  // namespace penstock::graph::golden_errors_test

// MakePlan as a whole: how mistakes are gathered, and what a plan says of itself.
#include "graph/plan/plan.h"

#include <gtest/gtest.h>

#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::planner_test {
namespace {

TEST(MakePlan, MistakesOfTheDeclarationComeFirst) {
  ModelBuilder g;
  g.model.mistakes.push_back({absl::StatusCode::kNotFound, "graph 'g' node 'z' (a.cc:9): said while declaring"});
  EXPECT_EQ(MistakeOf(g), "NOT_FOUND: graph 'g' node 'z' (a.cc:9): said while declaring");
  g.Output("y", 4);
  EXPECT_EQ(
      MistakeOf(g),
      "NOT_FOUND: graph 'g': 2 mistakes:\n"
      "  graph 'g' node 'z' (a.cc:9): said while declaring\n"
      "  graph 'g' buffer 'y' (a.cc:1): an Output that no node writes; its memory would come back untouched; write "
      "it or remove it");
}

// One of each mistake, none hidden by another.
TEST(MakePlan, OneGraphWithEveryMistakeGetsALineForEach) {
  ModelBuilder g("all");
  const int32_t wrong_n = g.Param("n"), negative = g.Param("neg", 1), real = g.Param("real", 3);
  g.model.params[negative].max = -1;
  g.model.params[real].is_integer = false;
  g.Param("n", 4);                                                                         // 4
  g.InOut("unmax", Extent(g.ParamDim(wrong_n)));                                           // 5
  g.InOut("minus", -3);                                                                    // 6
  g.InOut("huge", {int64_t{1} << 40, int64_t{1} << 40});                                   // 7
  g.Scratch("slot", 4, kSlot);                                                             // 8
  g.Scratch("here", 4, kSlot);                                                             // 9
  g.Scratch("hosted", 4, kHost);                                                           // 10
  g.Pitched(g.InOut("pitched", {4, 4}), 3);                                                // 11
  const int32_t x = g.Input("x", 8), y = g.Output("y", 16), t = g.Scratch("t", 8);         // 12, 13, 14
  g.InOut("x", 8);                                                                         // 15
  g.Host("");                                                                              // 16
  g.Host("alien", AccessDecl{0, 1, AccessMode::kRead, {}}, AccessDecl{});                  // 17
  g.Host("part", In{x, Slice(4, 5)});                                                      // 18
  g.node(g.Host("args")).args.push_back({ArgDecl::Form::kParam, 0, 4, 9, 7, 0, {}});          // 19
  g.node(g.For("block")).arg_block.resize(40000);                                          // 20
  g.After(g.Host("after"), -4);                                                            // 21
  g.node(g.Host("alone")).concurrency = -1;                                                // 22
  g.node(g.For("pinned")).device = 9;                                                      // 23
  g.Copy("copy", x, y);                                                                    // 24
  g.node(g.Fill("fill", y)).pattern.resize(3);                                             // 25
  g.node(g.For("rank")).extent = Extent(2, 2);                                             // 26
  g.node(g.Kernel("threads")).shape.block = {0, 1, 1};                                     // 27
  g.node(g.Kernel("twinless")).code.call_fallback = nullptr;                                   // 28
  NodeDecl& plain = g.node(g.For("plain"));                                                // 29
  plain.device = 1;
  plain.code.cuda_kernel = nullptr;
  const int32_t first = g.Host("first"), second = g.Host("second");                        // 30, 31
  g.After(first, second);
  g.After(second, first);
  g.Host("input", Out{x});                                                                 // 32
  g.For("early", In{t});                                                                   // 33
  g.Output("untouched", 4);                                                                // 34
  PlanOptions options = Devices(2);
  options.devices[1] = {"cuda:0", true, 1, 0};
  EXPECT_EQ(
      MistakeOf(g, options),
      "INVALID_ARGUMENT: graph 'all': 31 mistakes:\n"
      "  graph 'all' param 'n' (a.cc:1): declared 2 times: a.cc:1 and a.cc:4; names are unique among the params of a "
      "graph; rename all but one\n"
      "  graph 'all' param 'neg' (a.cc:2): AtMost(-1) is negative; such a parameter counts elements; give 0 or more\n"
      "  graph 'all' param 'real' (a.cc:3): has AtMost, but is not an integer; only integers have a maximum; remove "
      "AtMost or use an integer type\n"
      "  graph 'all' buffer 'x' (a.cc:12): declared 2 times: a.cc:12 and a.cc:15; names are unique among the buffers "
      "of a graph; rename all but one\n"
      "  graph 'all' buffer 'unmax' (a.cc:5): dimension 0 is 'n' (a.cc:1), which has no maximum; memory is planned "
      "before its value is known; declare it with AtMost\n"
      "  graph 'all' buffer 'minus' (a.cc:6): dimension 0 is -3; it is a count; give 0 or more\n"
      "  graph 'all' buffer 'huge' (a.cc:7): 1099511627776 x 1099511627776 elements of 4 bytes are more than 2^62 "
      "bytes; "
      "no device holds that; make a dimension or its AtMost smaller\n"
      "  graph 'all' buffer 'slot' (a.cc:8): a Buffer lives on a device or in pinned memory; declare it kDevice or "
      "kPinned\n"
      "  graph 'all' buffer 'here' (a.cc:9): a Buffer lives on a device or in pinned memory; declare it kDevice or "
      "kPinned\n"
      "  graph 'all' buffer 'hosted' (a.cc:10): a Buffer lives on a device or in pinned memory; declare it kDevice or "
      "kPinned\n"
      "  graph 'all' buffer 'pitched' (a.cc:11): has a pitch of 3 elements and rows of up to 4; rows do not overlap; "
      "make the pitch as large\n"
      "  graph 'all' node '' (a.cc:16): has no name; messages and traces call everything by its name; give it one\n"
      "  graph 'all' node 'alien' (a.cc:17): access 0 is to a buffer of another graph; a handle is good in the graph "
      "that made it; declare the buffer in this graph\n"
      "  graph 'all' node 'alien' (a.cc:17): access 1 is to no buffer; its handle was never set; declare the buffer in "
      "this graph\n"
      "  graph 'all' node 'part' (a.cc:18): access 0 takes 5 elements from 4 on in dimension 0 of 'x' (a.cc:12), which "
      "has 8; a slice lies inside its buffer; make its offset or size smaller\n"
      "  graph 'all' node 'args' (a.cc:19): argument 0 is a parameter of another graph; a handle is good in the graph "
      "that made it; declare the parameter in this graph\n"
      "  graph 'all' node 'block' (a.cc:20) on host:0: its arguments take 40000 bytes; a kernel takes at most 32764 "
      "there; put large values into a buffer\n"
      "  graph 'all' node 'after' (a.cc:21): After names node -4; the graph's nodes are 0 to 17; name one of them\n"
      "  graph 'all' node 'alone' (a.cc:22): Concurrency(-1): at least one run at a time must be able to use the "
      "callable; give 1 or more\n"
      "  graph 'all' node 'pinned' (a.cc:23): pinned to device 9; the runtime has 0 (host:0), 1 (cuda:0); pin it to "
      "one "
      "of these\n"
      "  graph 'all' node 'copy' (a.cc:24): copies 'x' (a.cc:12) to 'y' (a.cc:13), which has another extent ({8} and "
      "{16}); a Copy takes and writes boxes of one shape; declare both with the same constants and parameters\n"
      "  graph 'all' node 'fill' (a.cc:25): its pattern has 3 bytes and the elements of 'y' (a.cc:13) have 4; a Fill "
      "writes whole elements; fill with the buffer's element type\n"
      "  graph 'all' node 'rank' (a.cc:26): the functor takes a 1-D index and the extent is 2-D; it is called with an "
      "index of the extent; take int64_t, Index2 or Index3 to match\n"
      "  graph 'all' node 'threads' (a.cc:27) on host:0: its blocks have 0 x 1 x 1 threads; a block has 1 to 1024; use "
      "fewer, or "
      "more blocks\n"
      "  graph 'all' node 'twinless' (a.cc:28) on host:0: a Kernel runs on CUDA devices only; this is a host device "
      "and "
      "the node has no host fallback for it; give it one with .HostFallback(f), or pin it to a CUDA device\n"
      "  graph 'all' node 'plain' (a.cc:29) on cuda:0: declared in a.cc, which nvcc did not compile; compile this file "
      "as CUDA or pin the node to a host device\n"
      "  graph 'all' node 'plain' (a.cc:29) on cuda:0: node 'block' (a.cc:20) runs on host:0, a device of another "
      "driver; events order devices of one driver only; pin all nodes of a graph to devices of one driver\n"
      "  graph 'all': nodes wait for each other: 'first' (a.cc:30) after 'second' (a.cc:31) after 'first' (a.cc:30); "
      "none "
      "of them could start; remove an After\n"
      "  graph 'all' node 'input' (a.cc:32): writes 'x' (a.cc:12), which is an Input; bound Inputs are never changed; "
      "declare it with InOut\n"
      "  graph 'all' node 'early' (a.cc:33): reads 't' (a.cc:14) before any node has written it; its contents would be "
      "undefined; write it first, say Write where this node writes all of it or WriteSome where it only writes some of "
      "it, or declare it with Input or InOut\n"
      "  graph 'all' buffer 'untouched' (a.cc:34): an Output that no node writes; its memory would come back "
      "untouched; "
      "write it or remove it");
}

TEST(MakePlan, AnEmptyGraphHasNothingToDo) {
  const Plan plan = PlanOf(ModelBuilder());
  EXPECT_TRUE(plan.nodes.empty());
  EXPECT_TRUE(plan.commands.empty());
  EXPECT_TRUE(plan.done_events.empty());
  EXPECT_TRUE(plan.arenas.empty());
}

}  // namespace
}  // namespace penstock::graph::planner_test

// The plan as text and as a digraph.
#include <gtest/gtest.h>

#include "graph/plan/plan.h"
#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::print_test {
namespace {

ModelBuilder Saxpy() {
  ModelBuilder g("saxpy");
  const int32_t x = g.Input("x", 1000, kPinned), y = g.InOut("y", 1000);
  g.For("axpy", In{x}, Change{y});
  g.Host("look", In{y});
  return g;
}

TEST(PrintText, HasALineForEverything) {
  const ModelBuilder g = Saxpy();
  EXPECT_EQ(PrintText(PlanOf(g), g.model),
            R"(plan 'saxpy': 7 nodes, 3 lanes, 2 segments, 3 host steps, 4 events, 2 waits, structure 82333c2f74dda937
  0     upload x   upload        device 0 lane 0 segment 0  after -  x.bound -> x.device0
  1     stage y    stage in      host step 0                after -  y.bound -> y.pinned
  2     upload y   upload        device 0 lane 0 segment 1  after 1  y.pinned -> y.device0
  3     axpy       parallel for  device 0 lane 1 segment 1  after 0,2  reads x.device0, changes y.device0
  4     download y download      device 0 lane 2 segment 1  after 3  y.device0 -> y.pinned
  5     unstage y  stage out     host step 1                after 4  y.pinned -> y.bound
  6     look       host          host step 2                after 5  reads y.bound
lane 0: upload of device 0, priority 0
lane 1: compute of device 0, priority 0
lane 2: download of device 0, priority 0
segment 0: commands 0 to 1, after host steps -
segment 1: commands 1 to 9, after host steps 0
host step 0: node 1, after host steps -, events -
host step 1: node 5, after host steps -, events 1
host step 2: node 6, after host steps 1, events -
instance x.bound: 4000 bytes
instance x.device0: 4000 bytes at 0
instance y.bound: 4000 bytes
instance y.pinned: 4000 bytes at 0, stages
instance y.device0: 4000 bytes at 4096
arena of pinned memory: 4096 bytes a slot
arena of device 0: 8192 bytes a slot
remark: 10 edges: 3 waits for events, 2 for host steps; lane order or other waits cover the rest
)");
}

TEST(PrintDot, HasAClusterALane) {
  const ModelBuilder g = Saxpy();
  EXPECT_EQ(PrintDot(PlanOf(g), g.model), R"(digraph "saxpy" {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_host {
    label="host";
    n1 [label="stage y\nstage in", style=dashed];
    n5 [label="unstage y\nstage out", style=dashed];
    n6 [label="look\nhost"];
  }
  subgraph cluster_0 {
    label="lane 0: upload of device 0";
    n0 [label="upload x\nupload", style=dashed];
    n2 [label="upload y\nupload", style=dashed];
  }
  subgraph cluster_1 {
    label="lane 1: compute of device 0";
    n3 [label="axpy\nparallel for"];
  }
  subgraph cluster_2 {
    label="lane 2: download of device 0";
    n4 [label="download y\ndownload", style=dashed];
  }
  n1 -> n2;
  n0 -> n3;
  n2 -> n3;
  n3 -> n4;
  n4 -> n5;
  n5 -> n6;
}
)");
}

TEST(PrintDot, HasAClusterAConstruct) {
  ModelBuilder inner("g"), body("g"), outer("g");
  inner.Fill("set", inner.Scratch("y", 1));
  body.Fill("begin", body.Scratch("x", 1));
  const int32_t choose = body.Control("choose", Change{0});
  const int32_t z = outer.Scratch("z", 1);
  outer.Fill("first", z);
  const int32_t loop = outer.Control("loop", Change{z}), again = outer.Control("again", Change{z});
  const Plan of_inner = PlanOf(inner), of_body = PlanOf(body);
  const PartPlan then{choose, ControlKind::kIf, "then", &of_inner};
  EXPECT_EQ(PrintDot(PlanOf(outer), outer.model,
                     {{loop, ControlKind::kWhile, "condition", &of_inner},
                      {loop, ControlKind::kWhile, "body", &of_body, {then}},
                      {again, ControlKind::kRepeat, "body", &of_inner}}),
            R"(digraph "g" {
  rankdir=LR;
  compound=true;
  node [shape=box];
  subgraph cluster_0 {
    label="lane 0: compute of device 0";
    n0 [label="first\nfill"];
  }
  subgraph cluster_n1 {
    label="loop\nwhile";
    n1 [shape=point, style=invis];
    subgraph cluster_n1_0 {
      label="condition";
      subgraph cluster_n1_0_0 {
        label="lane 0: compute of device 0";
        n1_0_n0 [label="set\nfill"];
      }
    }
    subgraph cluster_n1_1 {
      label="body";
      subgraph cluster_n1_1_0 {
        label="lane 0: compute of device 0";
        n1_1_n0 [label="begin\nfill"];
      }
      subgraph cluster_n1_1_n1 {
        label="choose\nif";
        n1_1_n1 [shape=point, style=invis];
        subgraph cluster_n1_1_n1_0 {
          label="then";
          subgraph cluster_n1_1_n1_0_0 {
            label="lane 0: compute of device 0";
            n1_1_n1_0_n0 [label="set\nfill"];
          }
        }
      }
      n1_1_n0 -> n1_1_n1 [lhead=cluster_n1_1_n1];
    }
  }
  subgraph cluster_n2 {
    label="again\nrepeat";
    n2 [shape=point, style=invis];
    subgraph cluster_n2_2 {
      label="body";
      subgraph cluster_n2_2_0 {
        label="lane 0: compute of device 0";
        n2_2_n0 [label="set\nfill"];
      }
    }
  }
  n0 -> n1 [lhead=cluster_n1];
  n1 -> n2 [ltail=cluster_n1] [lhead=cluster_n2];
}
)");
}

TEST(PrintDot, EscapesNames) {
  ModelBuilder g("say \"hi\"");
  g.Host("a\\b\n\"c\"");
  EXPECT_EQ(PrintDot(PlanOf(g), g.model), R"(digraph "say \"hi\"" {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_host {
    label="host";
    n0 [label="a\\b\n\"c\"\nhost"];
  }
}
)");
}

}  // namespace
}  // namespace penstock::graph::print_test

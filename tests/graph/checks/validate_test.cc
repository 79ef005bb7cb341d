// Every mistake that a single record can hold, each with its whole message.
#include <gtest/gtest.h>

#include <limits>

#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::validate_test {
namespace {

constexpr int64_t kBig = int64_t{1} << 40;

PlanOptions OneCuda() { return Devices(1, true); }

TEST(Validate, AcceptsAnEmptyGraph) { EXPECT_EQ(MistakeOf(ModelBuilder()), "OK"); }

// Graphs by what is said to them.
const GraphVerdict kVerdicts[] = {
    {"AcceptsAGraphWithoutMistakes",
     [](ModelBuilder& g) {
       const int32_t x = g.Input("x", 8), y = g.Output("y", 8);
       g.For("k", In{x}, Out{y});
     },
     "OK"},
    {"AcceptsSizesOfZero",
     [](ModelBuilder& g) {
       const int32_t x = g.Input("x", {0, kBig}), y = g.Output("y", {kBig, 0});
       g.For("k", In{x}, Out{y});
     },
     "OK"},
    {"RefusesEmptyNames", [](ModelBuilder& g) { g.Host(""); },
     "graph 'g' node '' (a.cc:1): has no name; messages and traces call everything by its name; give it one"},
    {"KindsOfRecordsMayShareAName",
     [](ModelBuilder& g) {
       g.Param("x");
       g.InOut("x", 4);
       g.Host("x");
     },
     "OK"},
    {"RefusesRepeatedBufferAndParamNames",
     [](ModelBuilder& g) {
       g.Param("n");
       g.Param("n");
       g.InOut("x", 4);
       g.InOut("x", 4);
     },
     "graph 'g': 2 mistakes:\n"
     "  graph 'g' param 'n' (a.cc:1): declared 2 times: a.cc:1 and a.cc:2; names are unique among the params of a "
     "graph; rename all but one\n"
     "  graph 'g' buffer 'x' (a.cc:3): declared 2 times: a.cc:3 and a.cc:4; names are unique among the buffers of a "
     "graph; rename all but one"},
    {"RefusesNegativeAtMost", [](ModelBuilder& g) { g.model.params[g.Param("n", 5)].max = -5; },
     "graph 'g' param 'n' (a.cc:1): AtMost(-5) is negative; such a parameter counts elements; give 0 or more"},
    {"RefusesAtMostOfWhatIsNoInteger", [](ModelBuilder& g) { g.model.params[g.Param("n", 5)].is_integer = false; },
     "graph 'g' param 'n' (a.cc:1): has AtMost, but is not an integer; only integers have a maximum; remove AtMost or "
     "use an integer type"},
    {"RefusesNegativeDimensions", [](ModelBuilder& g) { g.InOut("x", {3, -2}); },
     "graph 'g' buffer 'x' (a.cc:1): dimension 1 is -2; it is a count; give 0 or more"},
    {"RefusesDimensionsWithoutMaximum",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n");
       g.InOut("x", Extent(g.ParamDim(n)));
     },
     "graph 'g' buffer 'x' (a.cc:2): dimension 0 is 'n' (a.cc:1), which has no maximum; memory is planned before its "
     "value is known; declare it with AtMost"},
    {"RefusesDimensionsThatAreNoIntegers",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n");
       g.model.params[0].is_integer = false;
       g.InOut("x", Extent(g.ParamDim(n)));
     },
     "graph 'g' buffer 'x' (a.cc:2): dimension 0 is 'n' (a.cc:1), which is not an integer; it is a count; give it an "
     "integer type and AtMost"},
    {"RefusesDimensionsOfAnotherGraph",
     [](ModelBuilder& g) {
       g.Param("n", 5);
       g.InOut("x", Extent(Dim(ParamHandle<int32_t>(ModelBuilder::kSerial + 1, 0))));
     },
     "graph 'g' buffer 'x' (a.cc:2): dimension 0 is a parameter of another graph; a handle is good in the graph that "
     "made it; declare the parameter in this graph"},
    {"RefusesDimensionsOutOfRange",
     [](ModelBuilder& g) {
       g.Param("n", 5);
       g.InOut("x", Extent(g.ParamDim(1)));
     },
     "graph 'g' buffer 'x' (a.cc:2): dimension 0 is a parameter of another graph; a handle is good in the graph that "
     "made it; declare the parameter in this graph"},
    {"RefusesSizesThatOverflow",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", kBig);
       g.InOut("x", {g.ParamDim(n), Dim(kBig)});
     },
     "graph 'g' buffer 'x' (a.cc:2): 1099511627776 x 1099511627776 elements of 4 bytes are more than 2^62 bytes; no "
     "device holds that; make a dimension or its AtMost smaller"},
    {"RefusesRanksOverThree", [](ModelBuilder& g) { g.model.buffers[g.InOut("x", 4)].extent.rank = 4; },
     "graph 'g' buffer 'x' (a.cc:1): has 4 dimensions; an extent has 1 to 3; use one of these"},
    {"RefusesBuffersInHostMemory", [](ModelBuilder& g) { g.Scratch("x", 4, kHost); },
     "graph 'g' buffer 'x' (a.cc:1): a Buffer lives on a device or in pinned memory; declare it kDevice or kPinned"},
    {"AcceptsRowsThatLieApart",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 6);
       const int32_t x = g.Pitched(g.InOut("x", {4, 5}), 8);
       g.Pitched(g.Input("exact", {4, 5}), 5);
       g.Pitched(g.Output("cube", {2, g.ParamDim(n), g.ParamDim(n)}), 6);
       g.Pitched(g.Input("nothing", {0, 5}), 5);
       g.Pitched(g.Scratch("t", {4, 5}), 7);
       g.Alias("pairs", g.Alias("part", x, Slice({0, 1}, {4, 4})), Slice({0, 0}, {4, 2}));
       g.Host("h", Change{x}, Out{2});
     },
     "OK"},
    {"RefusesAliasesThatDoNotFitThePitch",
     [](ModelBuilder& g) {
       const int32_t x = g.Pitched(g.InOut("x", {4, 4}), 7);
       g.Alias("wide", x, 8, {4, 2});
       g.Alias("bytes", x, 2, {4, 8});
     },
     "graph 'g' buffer 'wide' (a.cc:2): reads 'x' (a.cc:1), whose elements have 4 bytes, as elements of 8; its rows "
     "lie 28 bytes apart, no whole number of them; use another type or another pitch"},
    {"RefusesSpansOfRowsThatLieApart",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 4);
       const int32_t x = g.Pitched(g.InOut("x", {4, 8}), 9), y = g.Pitched(g.InOut("y", {4, 8}), 8);
       const int32_t line = g.Pitched(g.InOut("line", {1, 8}), 9), none = g.Pitched(g.InOut("none", {4, 0}), 9);
       const int32_t some = g.Pitched(g.InOut("some", {g.ParamDim(n), 8}), 9);
       const auto span = [&](const char* name, int32_t buffer, const Box& box) {
         g.node(g.Host(name, In{buffer, box})).args = {{ArgDecl::Form::kSpan, 0, 48, 0, 0, 0, ModelBuilder::TypeOf(4)}};
       };
       span("whole", x, {});
       span("rows", x, Slice({1, 0}, {2, 8}));
       span("row", x, Slice({1, 2}, {1, 6}));
       span("dense", y, {});
       span("line", line, {});
       span("none", none, {});
       span("some", some, {});  // Launch knows how many
     },
     "graph 'g': 2 mistakes:\n"
     "  graph 'g' node 'whole' (a.cc:7): argument 0 is a span of Slice({0, 0}, {4, 8}) of 'x' (a.cc:2), whose rows are "
     "not contiguous; a span has no pitch; take a View, or slice whole rows\n"
     "  graph 'g' node 'rows' (a.cc:8): argument 0 is a span of Slice({1, 0}, {2, 8}) of 'x' (a.cc:2), whose rows are "
     "not contiguous; a span has no pitch; take a View, or slice whole rows"},
    {"RefusesBuffersOfAnotherGraph",
     [](ModelBuilder& g) {
       g.InOut("x", 4);
       g.Host("h", AccessDecl{0, ModelBuilder::kSerial + 1, AccessMode::kRead, {}});
     },
     "graph 'g' node 'h' (a.cc:2): access 0 is to a buffer of another graph; a handle is good in the graph that made "
     "it; declare the buffer in this graph"},
    {"RefusesBuffersThatWereNeverDeclared",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 4);
       g.Host("h", In{x}, AccessDecl{});
     },
     "graph 'g' node 'h' (a.cc:2): access 1 is to no buffer; its handle was never set; declare the buffer in this "
     "graph"},
    {"AcceptsSlicesThatFitAndParametersThatMay",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 100), at = g.Param("at");
       const int32_t x = g.InOut("x", {4, 8}), y = g.InOut("y", Extent(g.ParamDim(n)));
       const int32_t part = g.Alias("part", x, Slice({1, 2}, {2, 4}));
       g.Alias("wide", x, 8, {4, 4});
       g.Host("h", In{x, Slice({3, 0}, {1, 8})}, In{x, Slice({4, 8}, {0, 0})}, In{part, Slice({1, 3}, {1, 1})},
              In{y, Slice(g.ParamDim(at), g.ParamDim(n))}, In{y, Slice(99, 1)});
     },
     "OK"},
    {"RefusesSlicesThatLeaveTheirBuffer",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 6), x = g.InOut("x", {4, 8}), y = g.InOut("y", Extent(g.ParamDim(n)));
       g.Host("a", In{x, Slice({1, 2}, {4, 6})});
       g.Host("b", In{x, Slice({0, 9}, {1, g.ParamDim(n)})});
       g.Host("c", In{y, Slice(g.ParamDim(n), 7)});
       g.Host("d", In{x, Slice({0, INT64_MAX}, {1, INT64_MAX})});
     },
     "graph 'g': 4 mistakes:\n"
     "  graph 'g' node 'a' (a.cc:4): access 0 takes 4 elements from 1 on in dimension 0 of 'x' (a.cc:2), which has 4; "
     "a slice lies inside its buffer; make its offset or size smaller\n"
     "  graph 'g' node 'b' (a.cc:5): access 0 takes 0 elements from 9 on in dimension 1 of 'x' (a.cc:2), which has 8; "
     "a slice lies inside its buffer; make its offset or size smaller\n"
     "  graph 'g' node 'c' (a.cc:6): access 0 takes 7 elements in dimension 0 of 'y' (a.cc:3), which has at most 6; a "
     "slice lies inside its buffer; make its offset or size smaller\n"
     "  graph 'g' node 'd' (a.cc:7): access 0 takes 9223372036854775807 elements from 9223372036854775807 on in "
     "dimension 1 of 'x' (a.cc:2), which has 8; a slice lies inside its buffer; make its offset or size smaller"},
    {"RefusesSlicesOfAnotherRank",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", {4, 8});
       g.Host("h", In{x, Slice(1, 2)});
     },
     "graph 'g' node 'h' (a.cc:2): access 0 takes a slice of 'x' (a.cc:1) with 1 offsets and 1 sizes; the buffer has 2 "
     "dimensions; give one of each for each dimension"},
    {"RefusesOffsetsAndSizesThatCountNothing",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n"), real = g.Param("real");
       g.model.params[real].is_integer = false;
       const int32_t x = g.InOut("x", {4, 8});
       const Dim other(ParamHandle<int32_t>(ModelBuilder::kSerial + 1, 0));
       g.Host("h", In{x, Slice({-1, g.ParamDim(real)}, {-2, g.ParamDim(n)})}, In{x, Slice({other, 0}, {1, other})});
     },
     "graph 'g': 6 mistakes:\n"
     "  graph 'g' node 'h' (a.cc:4): access 0 offset 0 of its slice of 'x' (a.cc:3) is -1; buffers begin at 0; give 0 "
     "or more\n"
     "  graph 'g' node 'h' (a.cc:4): access 0 size 0 of its slice of 'x' (a.cc:3) is -2; it is a count; give 0 or "
     "more\n"
     "  graph 'g' node 'h' (a.cc:4): access 0 offset 1 of its slice of 'x' (a.cc:3) is 'real' (a.cc:2), which is not "
     "an integer; it counts elements; give it an integer type\n"
     "  graph 'g' node 'h' (a.cc:4): access 0 size 1 of its slice of 'x' (a.cc:3) is 'n' (a.cc:1), which has no "
     "maximum; memory is planned before its value is known; declare it with AtMost\n"
     "  graph 'g' node 'h' (a.cc:4): access 1 offset 0 of its slice of 'x' (a.cc:3) is a parameter of another graph; a "
     "handle is good in the graph that made it; declare the parameter in this graph\n"
     "  graph 'g' node 'h' (a.cc:4): access 1 size 1 of its slice of 'x' (a.cc:3) is a parameter of another graph; a "
     "handle is good in the graph that made it; declare the parameter in this graph"},
    {"RefusesAliasesThatDoNotFitTheirBuffer",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 8);
       const int32_t x = g.InOut("x", {4, 5}), y = g.InOut("y", Extent(g.ParamDim(n)));  // 2, 3
       g.Alias("outside", x, Slice({2, 0}, {3, 5}));                                     // 4
       g.Alias("odd", x, 8, {4, 2});                                                     // 5
       g.Alias("varying", y, 8, Extent(g.ParamDim(n)));                                  // 6
       const int32_t part = g.Alias("part", x, Slice({0, 0}, {4, 4}));                   // 7
       g.Alias("wide", part, 8, {4, 2});                                                 // 8
       const int32_t nothing = g.Alias("nothing", x, Box{});                             // 9
       g.model.buffers[nothing].alias_of = -1;
       const int32_t alien = g.Alias("alien", x, Box{});  // 10
       g.model.buffers[alien].alias_graph = 1;
     },
     "graph 'g': 6 mistakes:\n"
     "  graph 'g' buffer 'outside' (a.cc:4): takes 3 elements from 2 on in dimension 0 of 'x' (a.cc:2), which has 4; a "
     "slice lies inside its buffer; make its offset or size smaller\n"
     "  graph 'g' buffer 'odd' (a.cc:5): reads 'x' (a.cc:2), whose elements have 4 bytes, as elements of 8; a row has "
     "20 bytes, no whole number of them; use another type or another row length\n"
     "  graph 'g' buffer 'varying' (a.cc:6): reads 'y' (a.cc:3), whose elements have 4 bytes, as elements of 8; a "
     "parameter sets the length of its rows, which need not be a whole number of them; use a type of the same size, or "
     "a constant\n"
     "  graph 'g' buffer 'wide' (a.cc:8): reads 'part' (a.cc:7), whose elements have 4 bytes, as elements of 8; it is "
     "a part of another buffer, whose rows need not be so long; read all of that as the other type, then take a part\n"
     "  graph 'g' buffer 'nothing' (a.cc:9): an alias of no buffer; its handle was never set; declare the buffer in "
     "this graph first\n"
     "  graph 'g' buffer 'alien' (a.cc:10): an alias of a buffer of another graph; a handle is good in the graph that "
     "made it; declare the buffer in this graph first"},
    {"RefusesAliasesOfThemselvesAndPartsOfAnotherType",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 4), self = g.Alias("self", x, Box{});
       g.model.buffers[self].alias_of = self;
       g.Alias("part", x, 8, 2, Slice(0, 2));
     },
     "graph 'g': 2 mistakes:\n"
     "  graph 'g' buffer 'self' (a.cc:2): an alias of a buffer of another graph; a handle is good in the graph that "
     "made it; declare the buffer in this graph first\n"
     "  graph 'g' buffer 'part' (a.cc:3): a part of 'x' (a.cc:1) with another element type; a part keeps the type; "
     "read all of the buffer as the other type, then take a part of that"},
    {"AccessesThroughAnAliasOfNothingAreLeftAlone",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 4), bad = g.Alias("bad", x, Slice(0, 2)),
                     worse = g.Alias("worse", bad, Slice(0, 1));
       g.model.buffers[bad].alias_of = 17;
       g.Host("h", Change{worse, Slice(0, 1)}, Loose{Change{bad}});
     },
     "graph 'g' buffer 'bad' (a.cc:2): an alias of a buffer of another graph; a handle is good in the graph that made "
     "it; declare the buffer in this graph first"},
    {"AcceptsFillsOfPartsAndAliases",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 8), at = g.Param("at");
       const int32_t x = g.InOut("x", {4, 8}), y = g.InOut("y", Extent(g.ParamDim(n)));
       const int32_t wide = g.Alias("wide", x, 16, {4, 2}), corner = g.Alias("corner", x, Slice({2, 4}, {2, 4}));
       const auto fill = [&](const char* name, int32_t buffer, const Box& box) {
         g.node(g.Fill(name, buffer)).accesses[0].box = box;
       };
       fill("rows", x, Slice({1, 0}, {2, 8}));
       fill("last", x, Slice({3, 7}, {1, 1}));
       fill("nothing", x, Slice({4, 8}, {0, 0}));
       fill("moved", y, Slice(g.ParamDim(at), g.ParamDim(n)));
       fill("wides", wide, {});
       fill("one wide", wide, Slice({0, 1}, {4, 1}));
       fill("corner", corner, {});
       fill("of the corner", corner, Slice({1, 3}, {1, 1}));
     },
     "OK"},
    {"RefusesFillsThatLeaveTheirBuffer",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", {4, 8}), corner = g.Alias("corner", x, Slice({2, 4}, {2, 4}));
       const auto fill = [&](const char* name, int32_t buffer, const Box& box) {
         g.node(g.Fill(name, buffer)).accesses[0].box = box;
       };
       fill("past", x, Slice({0, 8}, {4, 1}));
       fill("before", x, Slice({-1, 0}, {1, 1}));
       fill("less", x, Slice({0, 0}, {1, -8}));
       fill("far", x, Slice({0, INT64_MAX}, {1, INT64_MAX}));
       fill("line", x, Slice(0, 8));
       fill("of the corner", corner, Slice({0, 0}, {2, 5}));
     },
     "graph 'g': 6 mistakes:\n"
     "  graph 'g' node 'past' (a.cc:3): access 0 takes 1 elements from 8 on in dimension 1 of 'x' (a.cc:1), which has "
     "8; a slice lies inside its buffer; make its offset or size smaller\n"
     "  graph 'g' node 'before' (a.cc:4): access 0 offset 0 of its slice of 'x' (a.cc:1) is -1; buffers begin at 0; "
     "give 0 or more\n"
     "  graph 'g' node 'less' (a.cc:5): access 0 size 1 of its slice of 'x' (a.cc:1) is -8; it is a count; give 0 or "
     "more\n"
     "  graph 'g' node 'far' (a.cc:6): access 0 takes 9223372036854775807 elements from 9223372036854775807 on in "
     "dimension 1 of 'x' (a.cc:1), which has 8; a slice lies inside its buffer; make its offset or size smaller\n"
     "  graph 'g' node 'line' (a.cc:7): access 0 takes a slice of 'x' (a.cc:1) with 1 offsets and 1 sizes; the buffer "
     "has 2 dimensions; give one of each for each dimension\n"
     "  graph 'g' node 'of the corner' (a.cc:8): access 0 takes 5 elements from 0 on in dimension 1 of 'corner' "
     "(a.cc:2), which has 4; a slice lies inside its buffer; make its offset or size smaller"},
    {"RefusesSpansOfWhatIsNotContiguous",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", {4, 8}), cube = g.InOut("cube", {3, 4, 8});
       const auto span = [&](const char* name, int32_t buffer, const Box& box) {
         g.node(g.Host(name, In{buffer, box})).args = {{ArgDecl::Form::kSpan, 0, 48, 0, 0, 0, ModelBuilder::TypeOf(4)}};
       };
       span("column", x, Slice({0, 2}, {4, 4}));
       span("row", x, Slice({2, 2}, {1, 4}));
       span("rows", x, Slice({1, 0}, {2, 8}));
       span("layers", cube, Slice({1, 0, 0}, {2, 4, 8}));
       span("slab", cube, Slice({1, 1, 0}, {2, 2, 8}));
       span("one", cube, Slice({1, 1, 0}, {1, 2, 8}));
     },
     "graph 'g': 2 mistakes:\n"
     "  graph 'g' node 'column' (a.cc:3): argument 0 is a span of Slice({0, 2}, {4, 4}) of 'x' (a.cc:1), whose rows "
     "are not contiguous; a span has no pitch; take a View, or slice whole rows\n"
     "  graph 'g' node 'slab' (a.cc:7): argument 0 is a span of Slice({1, 1, 0}, {2, 2, 8}) of 'cube' (a.cc:2), whose "
     "rows are not contiguous; a span has no pitch; take a View, or slice whole rows"},
    {"LeavesSpansByParametersToTheLaunch",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 8), x = g.InOut("x", {4, 8}), y = g.InOut("y", {Dim(4), g.ParamDim(n)});
       const auto span = [&](const char* name, int32_t buffer, const Box& box) {
         g.node(g.Host(name, In{buffer, box})).args = {{ArgDecl::Form::kSpan, 0, 48, 0, 0, 0, ModelBuilder::TypeOf(4)}};
       };
       span("narrow", x, Slice({0, 1}, {2, g.ParamDim(n)}));
       span("first", y, Slice({0, 0}, {4, 4}));
     },
     "OK"},
    {"RefusesParametersOfAnotherGraph",
     [](ModelBuilder& g) {
       g.Param("n");
       g.node(g.Host("h")).args.push_back({ArgDecl::Form::kParam, 0, 4, 0, ModelBuilder::kSerial + 1, 0, {}});
     },
     "graph 'g' node 'h' (a.cc:2): argument 0 is a parameter of another graph; a handle is good in the graph that made "
     "it; declare the parameter in this graph"},
    {"RefusesParametersThatWereNeverDeclared",
     [](ModelBuilder& g) { g.node(g.Host("h")).args.push_back({ArgDecl::Form::kParam, 0, 4, -1, 0, 0, {}}); },
     "graph 'g' node 'h' (a.cc:1): argument 0 is no parameter; its handle was never set; declare the parameter in this "
     "graph"},
    {"TakesLargeArgumentBlocksOfHostNodes", [](ModelBuilder& g) { g.node(g.Host("h")).arg_block.resize(1 << 20); },
     "OK"},
    {"RefusesAfterOfNodesThatDoNotExist", [](ModelBuilder& g) { g.After(g.Host("h"), 17); },
     "graph 'g' node 'h' (a.cc:1): After names node 17; the graph's nodes are 0 to 0; name one of them"},
    {"RefusesConcurrencyOfZero", [](ModelBuilder& g) { g.node(g.Host("h")).concurrency = 0; },
     "graph 'g' node 'h' (a.cc:1): Concurrency(0): at least one run at a time must be able to use the callable; give 1 "
     "or more"},
    {"RefusesFewerOperationsThanNone", [](ModelBuilder& g) { g.node(g.Host("h")).flops = -1.5; },
     "graph 'g' node 'h' (a.cc:1): Flops(-1.5): one execution does at least 0 and less than 10^18 operations; count "
     "those of one run"},
    {"RefusesOperationsThatAreNoNumber",
     [](ModelBuilder& g) { g.node(g.Host("h")).flops = std::numeric_limits<double>::quiet_NaN(); },
     "graph 'g' node 'h' (a.cc:1): Flops(nan): one execution does at least 0 and less than 10^18 operations; count "
     "those of one run"},
    {"RefusesMoreOperationsThanProfilesHold", [](ModelBuilder& g) { g.node(g.Host("h")).flops = 1e18; },
     "graph 'g' node 'h' (a.cc:1): Flops(1e+18): one execution does at least 0 and less than 10^18 operations; count "
     "those of one run"},
    {"RefusesNodesThatMayVaryInADeterministicGraph",
     [](ModelBuilder& g) {
       g.model.deterministic = true;
       g.node(g.Host("h")).bits = Bits::kVarying;
       g.Host("i");
     },
     "graph 'g' node 'h' (a.cc:1): is declared Nondeterministic, and the graph is Deterministic; it may give other "
     "bits "
     "in each run; declare a node that does not, or leave out Graph::Deterministic"},
    {"RefusesAnyOrderInADeterministicGraph",
     [](ModelBuilder& g) {
       g.model.deterministic = true;
       g.node(g.Host("h")).bits = Bits::kAnyOrder;
     },
     "graph 'g' node 'h' (a.cc:1): may combine values in any order, and the graph is Deterministic; another order may "
     "give other bits; take CombineOrder::kFixed, the default"},
    {"TakesNodesThatMayVaryInOtherGraphs",
     [](ModelBuilder& g) {
       g.node(g.Host("h")).bits = Bits::kVarying;
       g.node(g.Host("i")).bits = Bits::kAnyOrder;
     },
     "OK"},
    {"RefusesPinsToDevicesThatDoNotExist", [](ModelBuilder& g) { g.node(g.For("k")).device = 2; },
     "graph 'g' node 'k' (a.cc:1): pinned to device 2; the runtime has 0 (host:0), 1 (host:1); pin it to one of these",
     Devices(2)},
    {"RefusesCopiesBetweenTypes",
     [](ModelBuilder& g) {
       const int32_t x = g.Input("x", 8), y = g.Buffer("y", 8, BufferRole::kOutput, kHost, 8);
       g.Copy("c", x, y);
     },
     "graph 'g' node 'c' (a.cc:3): copies 'x' (a.cc:1) to 'y' (a.cc:2), which has another element type (4 and 8 "
     "bytes); a Copy converts nothing; use one type"},
    {"RefusesCopiesBetweenExtents",
     [](ModelBuilder& g) {
       const int32_t n = g.Param("n", 8);
       const int32_t x = g.Input("x", {Dim(4), g.ParamDim(n)}), y = g.Output("y", {4, 8});
       g.Copy("c", x, y);
     },
     "graph 'g' node 'c' (a.cc:4): copies 'x' (a.cc:2) to 'y' (a.cc:3), which has another extent ({4, n} and {4, 8}); "
     "a Copy takes and writes boxes of one shape; declare both with the same constants and parameters"},
    {"ShapesOfCopiesAreThoseOfTheirBoxes",
     [](ModelBuilder& g) {
       const int32_t x = g.Input("x", {4, 8}), y = g.Output("y", {2, 4}), row = g.Output("row", 8);
       g.node(g.Copy("tile", x, y)).accesses[0].box = Slice({1, 2}, {2, 4});
       g.node(g.Copy("line", x, row)).accesses[0].box = Slice({3, 0}, {1, 8});  // ones in front count for nothing
       g.node(g.Copy("column", x, row)).accesses[0].box = Slice({0, 0}, {4, 2});
     },
     "graph 'g' node 'column' (a.cc:6): copies 'x' (a.cc:1) to 'row' (a.cc:3), which has another extent ({4, 2} and "
     "{8}); a Copy takes and writes boxes of one shape; declare both with the same constants and parameters"},
    {"RefusesCopiesOfABufferToItself",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 8);
       g.Copy("c", x, x);
     },
     "graph 'g' node 'c' (a.cc:2): copies 'x' (a.cc:1) to itself; name another target"},
    {"RefusesMalformedCopiesAndFills",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 8);
       g.node(g.Copy("c", x, x)).accesses.pop_back();
       g.node(g.Fill("f", x)).accesses[0].mode = AccessMode::kReadWrite;
       g.node(g.Copy("r", x, x)).accesses[1].mode = AccessMode::kRead;
     },
     "graph 'g': 3 mistakes:\n"
     "  graph 'g' node 'c' (a.cc:2): has 1 accesses; this kind of node has 2; declare it through "
     "Graph\n"
     "  graph 'g' node 'f' (a.cc:3): a Fill writes; declare it through Graph\n"
     "  graph 'g' node 'r' (a.cc:4): a Copy reads one buffer and writes another; declare it through Graph"},
    {"RefusesFillsOfAnotherSize",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 8);
       g.node(g.Fill("f", x)).pattern.resize(2);
     },
     "graph 'g' node 'f' (a.cc:2): its pattern has 2 bytes and the elements of 'x' (a.cc:1) have 4; a Fill writes "
     "whole elements; fill with the buffer's element type"},
    {"RefusesFunctorsOfAnotherRank", [](ModelBuilder& g) { g.node(g.For("k")).extent = Extent(4, 4); },
     "graph 'g' node 'k' (a.cc:1): the functor takes a 1-D index and the extent is 2-D; it is called with an index of "
     "the extent; take int64_t, Index2 or Index3 to match"},
    {"ChecksTheExtentOfAParallelFor", [](ModelBuilder& g) { g.node(g.For("k")).extent = Extent(-1); },
     "graph 'g' node 'k' (a.cc:1): dimension 0 is -1; it is a count; give 0 or more"},
    {"RefusesGridsOverTheLimit",
     [](ModelBuilder& g) {
       KernelShape& shape = g.node(g.Kernel("k")).shape;
       shape.per_thread = false;
       shape.grid = {Dim(1), Dim(65536), Dim(-1)};
     },
     "graph 'g': 2 mistakes:\n"
     "  graph 'g' node 'k' (a.cc:1) on cuda:0: grid dimension 1 is 65536; a launch has at most 65535; use fewer\n"
     "  graph 'g' node 'k' (a.cc:1): grid dimension 2 is -1; it is a count; give 0 or more",
     OneCuda()},
    {"RefusesMoreThreadsThanAGridHas", [](ModelBuilder& g) { g.node(g.Kernel("k")).shape.threads = Dim(kBig); },
     "graph 'g' node 'k' (a.cc:1) on cuda:0: the number of threads is 1099511627776; a launch has at most "
     "549755813632; use fewer",
     OneCuda()},
    {"RefusesDimensionsThatDoNotFitTogetherBesideOneOfZero",
     [](ModelBuilder& g) { g.Input("x", Extent(int64_t{1} << 61, int64_t{1} << 61, 0)); },
     "graph 'g' buffer 'x' (a.cc:1): 2305843009213693952 x 2305843009213693952 x 0 elements of 4 bytes are more than "
     "2^62 bytes; no device holds that; make a dimension or its AtMost smaller"},
};

class ValidateVerdicts : public testing::TestWithParam<GraphVerdict> {};
TEST_P(ValidateVerdicts, AreAsListed) { ExpectVerdict(GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, ValidateVerdicts, testing::ValuesIn(kVerdicts), NameOfEntry<GraphVerdict>);

TEST(Validate, NeedsADevice) {
  EXPECT_EQ(MistakeOf(ModelBuilder(), Devices(0)),
            "INVALID_ARGUMENT: graph 'g': there is no device to plan for; give the runtime one");
}

TEST(Validate, NeedsADefaultDeviceThatExists) {
  PlanOptions options = Devices(2);
  options.default_device = 2;
  EXPECT_EQ(MistakeOf(ModelBuilder(), options),
            "INVALID_ARGUMENT: graph 'g': the default device is 2; the runtime has 2 devices; name one of them");
}

TEST(Validate, NeedsALane) {
  PlanOptions options = Devices(1);
  options.max_lanes = 0;
  EXPECT_EQ(MistakeOf(ModelBuilder(), options),
            "INVALID_ARGUMENT: graph 'g': max_lanes is 0; kernels need a lane on each device; give 1 or more");
}

TEST(Validate, RefusesAGraphWithoutAName) {
  EXPECT_EQ(MistakeOf(ModelBuilder("")),
            "INVALID_ARGUMENT: graph '': the graph declared at a.cc:0 has no name; messages and traces call everything "
            "by its name; give it one");
}

TEST(Validate, NamesTheLinesOfARepeatedName) {
  ModelBuilder g;
  g.Host("same");
  g.Host("other");
  g.Host("same");
  g.Host("same");
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g' node 'same' (a.cc:1): declared 3 times: a.cc:1, a.cc:3 and a.cc:4; names are "
            "unique among the nodes of a graph; rename all but one");
  for (int i = 0; i < 78; ++i) g.Host("same");
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g' node 'same' (a.cc:1): declared 81 times: a.cc:1, a.cc:3, a.cc:4 and 78 more; "
            "names are unique among the nodes of a graph; rename all but one");
}

TEST(Validate, ListsAMistakeOfManyNodesForTheFirstOfThem) {
  ModelBuilder g;
  for (int i = 0; i < 81; ++i) g.node(g.Host(std::to_string(i).c_str())).concurrency = 0;
  g.node(g.Host("other")).concurrency = -1;
  const std::string text = MistakeOf(g);
  const std::string what =
      ": Concurrency(0): at least one run at a time must be able to use the callable; give 1 or more";
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10) << text;
  EXPECT_NE(text.find("graph 'g': 82 mistakes:\n  graph 'g' node '0' (a.cc:1)" + what), std::string::npos) << text;
  EXPECT_NE(text.find("node '7' (a.cc:8)" + what +
                      "\n  graph 'g': the last mistake is made 73 times more\n"
                      "  graph 'g' node 'other' (a.cc:82): Concurrency(-1)"),
            std::string::npos)
      << text;
}

// A handle that was never set is no constant, wherever a size or an offset may stand.
TEST(Validate, RefusesDimensionsOfNoParameter) {
  const ParamHandle<int32_t> unset, by_hand(ModelBuilder::kSerial, -7);
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.InOut("y", Extent(2, unset));
  g.InOut("z", Extent(by_hand));
  g.Alias("a", x, Slice(unset, 1));
  g.Host("h", Change{x, Slice(0, unset)});
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g': 4 mistakes:\n"
            "  graph 'g' buffer 'y' (a.cc:2): dimension 1 is no parameter; its handle was never set; declare the "
            "parameter in this graph\n"
            "  graph 'g' buffer 'z' (a.cc:3): dimension 0 is no parameter; its handle was never set; declare the "
            "parameter in this graph\n"
            "  graph 'g' buffer 'a' (a.cc:4): offset 0 of its slice of 'x' (a.cc:1) is no parameter; its handle was "
            "never set; declare the parameter in this graph\n"
            "  graph 'g' node 'h' (a.cc:5): access 0 size 0 of its slice of 'x' (a.cc:1) is no parameter; its handle "
            "was never set; declare the parameter in this graph");
}

TEST(Validate, TakesSizesUpTo2To62Bytes) {
  ModelBuilder g;
  g.InOut("x", {Dim(int64_t{1} << 30), Dim(int64_t{1} << 30)});
  EXPECT_EQ(MistakeOf(g), "OK");
  g.InOut("y", {Dim(int64_t{1} << 30), Dim((int64_t{1} << 30) + 1)});
  EXPECT_NE(MistakeOf(g), "OK");
}

TEST(Validate, RefusesPitchesThatDoNotFitTheirRows) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 6);
  g.Pitched(g.InOut("line", 4), 8);
  g.Pitched(g.InOut("narrow", {4, 5}), 4);
  g.Pitched(g.InOut("negative", {4, 5}), -5);
  g.Pitched(g.InOut("varies", {4, g.ParamDim(n)}), 5);
  g.Pitched(g.InOut("far", {4, 5}), int64_t{1} << 60);
  g.Pitched(g.InOut("farther", {int64_t{1} << 40, 0, 5}), int64_t{1} << 40);
  g.Pitched(g.State("state", {4, 5}), 8);
  const std::string tail = "; rows do not overlap; make the pitch as large\n";
  const std::string more =
      " elements, which makes it more than 2^62 bytes; no device holds that; make the pitch or a dimension smaller\n";
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g': 7 mistakes:\n"
            "  graph 'g' buffer 'line' (a.cc:2): has a pitch of 8 elements and no rows; a pitch is from row to row; "
            "give it two or three dimensions\n"
            "  graph 'g' buffer 'narrow' (a.cc:3): has a pitch of 4 elements and rows of up to 5" +
                tail + "  graph 'g' buffer 'negative' (a.cc:4): has a pitch of -5 elements and rows of up to 5" + tail +
                "  graph 'g' buffer 'varies' (a.cc:5): has a pitch of 5 elements and rows of up to 6" + tail +
                "  graph 'g' buffer 'far' (a.cc:6): has a pitch of 1152921504606846976" + more +
                "  graph 'g' buffer 'farther' (a.cc:7): has a pitch of 1099511627776" + more +
                "  graph 'g' buffer 'state' (a.cc:8): has a pitch of 8 elements, but its memory is another's; declare "
                "it through Graph");
}

TEST(Validate, RefusesLargeArgumentBlocks) {
  ModelBuilder g;
  PlanOptions options = Devices(1);
  options.devices[0].limits.argument_bytes = 4096;
  g.node(g.For("ok")).arg_block.resize(4096);
  EXPECT_EQ(MistakeOf(g, options), "OK");
  g.node(g.For("k")).arg_block.resize(4097);
  EXPECT_EQ(MistakeOf(g, options),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:2) on host:0: its arguments take 4097 bytes; a kernel takes at "
            "most 4096 there; put large values into a buffer");
  options.devices[0].limits.argument_bytes = 4097;
  EXPECT_EQ(MistakeOf(g, options), "OK");
}

TEST(Validate, RefusesDevicesOfTwoDrivers) {
  ModelBuilder g;
  g.For("a");
  g.node(g.For("b")).device = 1;
  g.node(g.For("c")).device = 1;
  PlanOptions options = Devices(2);
  options.devices[1] = {"cuda:0", true, 1, 0};
  EXPECT_EQ(
      MistakeOf(g, options),
      "INVALID_ARGUMENT: graph 'g' node 'b' (a.cc:2) on cuda:0: node 'a' (a.cc:1) runs on host:0, a device of "
      "another driver; events order devices of one driver only; pin all nodes of a graph to devices of one driver");
}

TEST(Validate, CopiesInsideABufferAreBetweenBoxesThatCannotMeet) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 4), x = g.InOut("x", {4, 8}), alias = g.Alias("alias", x, Slice({0, 4}, {4, 4}));
  const auto copy = [&](const char* name, int32_t from, const Box& taken, int32_t to, const Box& given) {
    NodeDecl& node = g.node(g.Copy(name, from, to));
    node.accesses[0].box = taken;
    node.accesses[1].box = given;
  };
  copy("apart", x, Slice({0, 0}, {4, 4}), x, Slice({0, 4}, {4, 4}));
  copy("to the alias", x, Slice({0, 0}, {4, 4}), alias, {});
  EXPECT_EQ(MistakeOf(g), "OK");
  copy("corner", x, Slice({0, 0}, {2, 2}), x, Slice({1, 1}, {2, 2}));
  copy("under the alias", alias, {}, x, Slice({0, 3}, {4, 4}));
  copy("anywhere", x, Slice({g.ParamDim(n), 0}, {1, 2}), x, Slice({0, 4}, {1, 2}));
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g': 3 mistakes:\n"
            "  graph 'g' node 'corner' (a.cc:6): copies 'x' (a.cc:2) to itself, and both boxes hold the same elements; "
            "copy to another buffer, or between boxes that cannot overlap\n"
            "  graph 'g' node 'under the alias' (a.cc:7): copies 'x' (a.cc:2) to itself, and both boxes hold the same "
            "elements; copy to another buffer, or between boxes that cannot overlap\n"
            "  graph 'g' node 'anywhere' (a.cc:8): copies 'x' (a.cc:2) to itself, and parameters may make both boxes "
            "hold the same elements; copy to another buffer, or between boxes that cannot overlap");
}

TEST(Validate, RefusesBlocksOverTheLimit) {
  ModelBuilder g;
  g.node(g.Kernel("ok")).shape.block = {32, 32, 1};
  EXPECT_EQ(MistakeOf(g, OneCuda()), "OK");
  g.node(g.Kernel("k")).shape.block = {32, 33, 1};
  g.node(g.Kernel("m")).shape.block = {UINT32_MAX, UINT32_MAX, 0};
  EXPECT_EQ(
      MistakeOf(g, OneCuda()),
      "INVALID_ARGUMENT: graph 'g': 2 mistakes:\n"
      "  graph 'g' node 'k' (a.cc:2) on cuda:0: its blocks have 32 x 33 x 1 threads; a block has 1 to 1024; use fewer, "
      "or more blocks\n"
      "  graph 'g' node 'm' (a.cc:3) on cuda:0: its blocks have 4294967295 x 4294967295 x 0 threads; a block has 1 to "
      "1024; "
      "use fewer, or more blocks");
}

TEST(Validate, RefusesBlocksThatAreTooLargeInOneDimension) {
  ModelBuilder g;
  g.node(g.Kernel("ok")).shape.block = {1, 16, 64};
  EXPECT_EQ(MistakeOf(g, OneCuda()), "OK");
  g.node(g.Kernel("k")).shape.block = {1, 1, 65};
  EXPECT_EQ(MistakeOf(g, OneCuda()),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:2) on cuda:0: its blocks have 1 x 1 x 65 threads; a block has "
            "at most 1024 x 1024 x 64; use fewer there, or more blocks");
}

TEST(Validate, RefusesMoreSharedMemoryThanABlockHas) {
  ModelBuilder g;
  g.node(g.Kernel("ok")).shape.shared_bytes = 227 << 10;
  EXPECT_EQ(MistakeOf(g, OneCuda()), "OK");
  g.node(g.Kernel("k")).shape.shared_bytes = (227 << 10) + 1;
  EXPECT_EQ(MistakeOf(g, OneCuda()),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:2) on cuda:0: its blocks take 232449 bytes of shared memory; a "
            "block has at most 232448; use less");
}

TEST(Validate, NamesTheFileThatNvccDidNotCompile) {
  ModelBuilder g;
  g.node(g.For("f")).code.cuda_kernel = nullptr;
  EXPECT_EQ(MistakeOf(g), "OK");
  EXPECT_EQ(MistakeOf(g, OneCuda()),
            "FAILED_PRECONDITION: graph 'g' node 'f' (a.cc:1) on cuda:0: declared in a.cc, which nvcc did not compile; "
            "compile this file as CUDA or pin the node to a host device");
}

TEST(Validate, NamesTheFileOfAKernelThatNvccDidNotCompile) {
  ModelBuilder g;
  g.node(g.Kernel("k")).code.cuda_kernel = nullptr;
  EXPECT_EQ(MistakeOf(g, OneCuda()),
            "FAILED_PRECONDITION: graph 'g' node 'k' (a.cc:1) on cuda:0: declared in a.cc, which nvcc did not compile; "
            "compile this file as CUDA or pin the node to a host device");
}

// Once, by the first that is missing, also where that is not the first of the algorithm.
TEST(Validate, NamesTheNodeOfAnAlgorithmThatNvccDidNotCompile) {
  for (const int missing : {0, 1, 2}) {
    ModelBuilder g;
    for (int n = 0; n < 3; ++n) {
      NodeDecl& node = g.node(g.For("f" + std::to_string(n)));
      node.later = n > 0;
      if (n >= missing) node.code.cuda_kernel = nullptr;
    }
    EXPECT_EQ(
        MistakeOf(g, OneCuda()),
        "FAILED_PRECONDITION: graph 'g' node 'f" + std::to_string(missing) + "' (a.cc:" + std::to_string(missing + 1) +
            ") on cuda:0: declared in a.cc, which nvcc did not compile; compile this file as CUDA or pin the node "
            "to a host device");
  }
}

TEST(Validate, NamesALaunchNodeOfAnAlgorithmThatNvccDidNotCompile) {
  ModelBuilder g;
  NodeDecl& node = g.node(g.Launch("sort"));
  EXPECT_EQ(MistakeOf(g, OneCuda()), "OK");
  node.code.lacks_cuda = true;
  EXPECT_NE(
      MistakeOf(g, OneCuda()).find("node 'sort' (a.cc:1) on cuda:0: declared in a.cc, which nvcc did not compile"),
      std::string::npos);
}

TEST(Validate, NeedsNoNvccForAKernelFromASource) {
  ModelBuilder g;
  NodeDecl& node = g.node(g.Kernel("k"));
  node.code.cuda_kernel = nullptr;
  node.code.source = Source("text", "kernel").shared_parts();
  EXPECT_EQ(MistakeOf(g, OneCuda()), "OK");
  EXPECT_EQ(MistakeOf(g), "OK");
  node.code.call_fallback = nullptr;
  EXPECT_EQ(MistakeOf(g, OneCuda()), "OK");
  EXPECT_NE(MistakeOf(g), "OK") << "on a host device it needs a fallback";
}

TEST(Validate, RefusesASourceThatLacksSomething) {
  using namespace std::string_literals;
  const auto mistake = [](const Source& source) {
    ModelBuilder g;
    g.node(g.Kernel("k")).code.source = source.shared_parts();
    return MistakeOf(g);
  };
  EXPECT_EQ(mistake(Source("text", "kernel", {.options = {"-DX"}, .headers = {{"h", ""}}})), "OK");
  EXPECT_EQ(mistake(Source("", "kernel")),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1): its source has no text; give it that of a CUDA translation "
            "unit");
  EXPECT_EQ(mistake(Source("text", "")),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1): its source names no kernel; name a __global__ function of "
            "the text, as axpy<float>");
  for (const Source& source :
       {Source("te\0xt"s, "kernel"), Source("text", "ker\0nel"s), Source("text", "kernel", {.options = {"-D\0X"s}}),
        Source("text", "kernel", {.headers = {{"h", "\0"s}}}), Source("text", "kernel", {.file = "\0"s})}) {
    EXPECT_EQ(mistake(source),
              "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1): its source has a null character, at which the compiler "
              "would end; leave it out");
  }
}

TEST(Validate, RefusesHeadersOfASourceThatAreNotToldApart) {
  const auto mistake = [](std::vector<SourceHeader> headers) {
    ModelBuilder g;
    g.node(g.Kernel("k")).code.source = Source("text", "kernel", {.headers = std::move(headers)}).shared_parts();
    return MistakeOf(g);
  };
  EXPECT_EQ(mistake({{"a", "x"}, {"b", "x"}}), "OK");
  EXPECT_EQ(mistake({{"a", "x"}, {"a", "y"}}),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1): two headers of its source are called 'a'; give each a name "
            "of its own");
  EXPECT_EQ(
      mistake({{"", "x"}}),
      "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1): a header of its source has no name; give it the one that the "
      "#include names");
}

TEST(Validate, AsksForHostTwins) {
  ModelBuilder g;
  g.node(g.Kernel("k")).code.call_fallback = nullptr;
  g.node(g.Launch("l")).code.call_fallback = nullptr;
  EXPECT_EQ(MistakeOf(g, OneCuda()), "OK");
  EXPECT_EQ(
      MistakeOf(g),
      "UNIMPLEMENTED: graph 'g': 2 mistakes:\n"
      "  graph 'g' node 'k' (a.cc:1) on host:0: a Kernel runs on CUDA devices only; this is a host device and the "
      "node has no host fallback for it; give it one with .HostFallback(f), or pin it to a CUDA device\n"
      "  graph 'g' node 'l' (a.cc:2) on host:0: a Launch submits to a CUDA stream; this is a host device and the "
      "node has no host fallback for it; give it one with .HostFallback(f), or pin it to a CUDA device");
}

}  // namespace
}  // namespace penstock::graph::validate_test

// The job as a graph: photograph in, grey, blurs, Sobel, edge picture out.
//
// The file that declares it is the only one that a CUDA build compiles with nvcc, so it includes nothing but the
// library and the filters.
//
// Threads: DeclareEdges is a pure function; the handles are plain values.
#pragma once

#include <cstdint>

#include "filters.h"
#include "penstock/graph.h"

namespace photos {

struct EdgesGraph {
  penstock::Graph graph;
  penstock::ParamHandle<int32_t> height, width;
  penstock::BufferHandle<Rgb> photo;      // bound to pinned memory, height * width
  penstock::BufferHandle<uint8_t> edges;  // bound to pinned memory, height * width
};

// For pictures of any size up to the given one, in pixels. Mistakes, such as a size of 0, come back from Compile.
EdgesGraph DeclareEdges(int32_t max_height, int32_t max_width, int blur_passes);

}  // namespace photos

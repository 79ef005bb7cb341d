// Compiled by nvcc where there is CUDA, else by the C++ compiler; see CMakeLists.txt.
#include "edges_graph.h"

#include <string>
#include <utility>

namespace photos {

EdgesGraph DeclareEdges(int32_t max_height, int32_t max_width, int blur_passes) {
  penstock::Graph graph("edges");
  auto h = graph.Param<int32_t>("height", penstock::AtMost(max_height));
  auto w = graph.Param<int32_t>("width", penstock::AtMost(max_width));
  const penstock::Extent size = {h, w};
  auto photo = graph.Input<Rgb>("photo", size, penstock::kPinned);
  auto edges = graph.Output<uint8_t>("edges", size, penstock::kPinned);
  auto grey = graph.Buffer<uint8_t>("grey", size);
  auto spare = grey;
  if (blur_passes > 0) spare = graph.Buffer<uint8_t>("blurred", size);

  graph.ParallelFor("to grey", size, Grey{}, penstock::Read(photo), penstock::Write(grey));
  for (int i = 1; i <= blur_passes; ++i) {
    graph.ParallelFor("blur " + std::to_string(i), size, Blur{}, penstock::Read(grey), penstock::Write(spare));
    std::swap(grey, spare);
  }
  graph.ParallelFor("sobel", size, Sobel{}, penstock::Read(grey), penstock::Write(edges));
  return {std::move(graph), h, w, photo, edges};
}

}  // namespace photos

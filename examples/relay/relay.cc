// Two executables in a row, each on its own device: images are smoothed on one and their edges found on the other. What
// the first has made goes on by device memory and a copy between the devices; no host thread stands between them.
//
//   relay [--devices cuda | host:2]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kH = 240, kW = 320;

PS_HOST_DEVICE int At(ps::View<const uint8_t> image, int64_t y, int64_t x) {
  return image(y < 0 ? 0 : y < kH ? y : kH - 1, x < 0 ? 0 : x < kW ? x : kW - 1);
}
struct Smooth {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint8_t> in, ps::View<uint8_t> out) const {
    int sum = 0;
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) sum += At(in, i.y + dy, i.x + dx);
    }
    out(i.y, i.x) = static_cast<uint8_t>(sum / 9);
  }
};
struct Edges {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint8_t> in, ps::View<uint8_t> out) const {
    const int x = At(in, i.y, i.x + 1) - At(in, i.y, i.x - 1), y = At(in, i.y + 1, i.x) - At(in, i.y - 1, i.x);
    const int sum = (x < 0 ? -x : x) + (y < 0 ? -y : y);
    out(i.y, i.x) = static_cast<uint8_t>(sum > 255 ? 255 : sum);
  }
};

struct Image {
  std::vector<uint8_t> pixels = std::vector<uint8_t>(kH * kW), edges = std::vector<uint8_t>(kH * kW);
};

absl::Status Run(const std::string& devices, int images) {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices}));
  const int last = static_cast<int>(runtime.devices().size()) - 1;
  ps::Graph smooth("smooth"), edges("edges");
  auto pixels = smooth.Input<uint8_t>("pixels", {kH, kW});
  auto smoothed = smooth.Output<uint8_t>("smoothed", {kH, kW}, ps::kDevice);
  smooth.ParallelFor("smooth", {kH, kW}, Smooth{}, ps::Read(pixels), ps::Write(smoothed));
  auto input = edges.Input<uint8_t>("input", {kH, kW}, ps::kDevice, /*device=*/0);  // there; a copy brings it here
  auto result = edges.Output<uint8_t>("result", {kH, kW});
  edges.ParallelFor("edges", {kH, kW}, Edges{}, ps::Read(input), ps::Write(result));
  PS_ASSIGN_OR_RETURN(ps::Executable first, runtime.Compile(smooth, {.slots = 3, .device = 0}));
  PS_ASSIGN_OR_RETURN(ps::Executable second, runtime.Compile(edges, {.slots = 3, .device = last}));

  ps::Stages<Image> stages;
  stages.Run("smooth", first, [&](ps::Item<Image>& image) { image.Set(pixels, image->pixels); });
  stages.Then("edges", second, {ps::Link(smoothed, input)},
              [&](ps::Item<Image>& image) { image.Set(result, image->edges); });
  PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<Image>::Create(std::move(stages)));

  int made = 0, right = 0;
  PS_RETURN_IF_ERROR(pipe.Run(
      [&]() -> std::optional<Image> {  // a step from dark to light, further right in each image
        if (made == images) return std::nullopt;
        Image image;
        for (int64_t i = 0; i < kH * kW; ++i) image.pixels[i] = i % kW < 20 + made % 200 ? 30 : 210;
        ++made;
        return image;
      },
      [&](ps::Item<Image>& image) {
        const int64_t step = 20 + right % 200;
        const uint8_t* const row = &image->edges[kH / 2 * kW];
        if (image.status().ok() && row[step] == 120 && row[step - 1] == 120 && row[step + 5] == 0) ++right;
      }));
  std::printf("%d of %d images right; smoothed on %s, edges found on %s\n%s", right, images,
              runtime.devices()[0].name.c_str(), runtime.devices()[last].name.c_str(), Print(pipe.stats()).c_str());
  return right == images ? absl::OkStatus() : absl::InternalError("some images are wrong");
}

int main(int argc, char** argv) {
  const std::string devices = argc == 3 && std::strcmp(argv[1], "--devices") == 0 ? argv[2] : "";
  const absl::Status status = Run(devices, 300);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

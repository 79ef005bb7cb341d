// The heat equation on a grid in bands of rows, over two GPUs: a band's edge rows first, then halo rows to the
// neighbours while the inner rows are computed. Streams and events by hand against Penstock, whose bands are a State in
// shards: with halos that are exchanged, and with kernels that read the neighbours' rows where they are.
//
// Raw ways have a stream a band for kernels, and
//   own      copy halos on a second stream a band
//   same     copy halos on the band's own stream
//   reads    copy nothing: the kernels of edge rows, on a second stream, read the neighbour's row over the link
// each submitted from one thread, and each captured once as one graph of 20 steps on both GPUs and replayed. All ways
// do the same additions in the same order; the grid after all steps is compared with the host's, bit by bit.
//
// With fewer than two GPUs the Penstock half runs on two host devices, for its results only.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

using Grid = std::vector<uint32_t>;

// In a box with a halo row above and below. Unsigned, so that every order of fusing gives the same bits.
PS_HOST_DEVICE uint32_t Heated(uint32_t above, uint32_t left, uint32_t at, uint32_t right, uint32_t below) {
  return at * 5 + above + left + right + below;
}
struct Heat {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint32_t> in, ps::View<uint32_t> out) const {
    const int64_t y = i.y + 1, x = i.x;
    const bool edge = x == 0 || x == in.width - 1;
    out(i.y, x) = edge ? in(y, x) : Heated(in(y - 1, x), in(y, x - 1), in(y, x), in(y, x + 1), in(y + 1, x));
  }
};
// The same of the rows above, at and below, each a View.
struct HeatOfRows {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint32_t> above, ps::View<const uint32_t> at,
                                 ps::View<const uint32_t> below, ps::View<uint32_t> out) const {
    const int64_t y = i.y, x = i.x;
    const bool edge = x == 0 || x == at.width - 1;
    out(y, x) = edge ? at(y, x) : Heated(above(y, x), at(y, x - 1), at(y, x), at(y, x + 1), below(y, x));
  }
};
// Row `y` of `out` from rows y - 1 to y + 1 of `in`; a thread has so many of them, which is the fastest by hand
// (elements).
constexpr int kRows = 4;
__global__ void RawHeat(const uint32_t* in, uint32_t* out, int64_t rows, int64_t width) {
  const int64_t x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (x >= width) return;
#pragma unroll
  for (int64_t y = int64_t{blockIdx.y} * kRows; y < int64_t{blockIdx.y + 1} * kRows; ++y) {
    if (y >= rows) return;
    const uint32_t* at = in + y * width + x;
    out[y * width + x] = x == 0 || x == width - 1 ? *at : Heated(at[-width], at[-1], *at, at[1], at[width]);
  }
}

// Rows 1 and `rows` of a band, whose neighbours' rows are elsewhere.
__global__ void RawEdges(const uint32_t* in, uint32_t* out, const uint32_t* above, const uint32_t* below, int64_t rows,
                         int64_t width) {
  const int64_t x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (x >= width) return;
  const int64_t y = blockIdx.y == 0 ? 1 : rows;
  const uint32_t* at = in + y * width + x;
  const uint32_t *up = y == 1 ? above + x : at - width, *down = y == rows ? below + x : at + width;
  out[y * width + x] = x == 0 || x == width - 1 ? *at : Heated(*up, at[-1], *at, at[1], *down);
}

// How bands get their neighbours' rows: see above.
enum class Halos { kOwn, kSame, kReads };
constexpr int kUnroll = 20;  // steps of a graph

struct Work {
  Work(int64_t rows_in, int64_t width_in, int steps_in)
      : rows(rows_in), width(width_in), steps(steps_in), start(static_cast<size_t>((rows + 2) * width)) {
    for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<uint32_t>(i) * 2654435761u;
    end = start;
    Grid next = start;
    for (int s = 0; s < steps; ++s) {
      for (int64_t y = 1; y <= rows; ++y) {
        for (int64_t x = 1; x + 1 < width; ++x) {
          const uint32_t* at = &end[static_cast<size_t>(y * width + x)];
          next[static_cast<size_t>(y * width + x)] = Heated(at[-width], at[-1], *at, at[1], at[width]);
        }
      }
      std::swap(end, next);
    }
  }
  // Band `b` of so many, with its halo rows.
  std::span<const uint32_t> Band(const Grid& grid, int b, int bands) const {
    const int64_t h = rows / bands;
    return {&grid[static_cast<size_t>(b * h * width)], static_cast<size_t>((h + 2) * width)};
  }
  void CheckBand(const std::string& way, std::span<const uint32_t> found, int b, int bands) const {
    const std::span<const uint32_t> wanted = Band(end, b, bands);
    const auto inner = [&](std::span<const uint32_t> of) {
      return of.subspan(static_cast<size_t>(width), of.size() - 2 * static_cast<size_t>(width));
    };
    if (!std::ranges::equal(inner(found), inner(wanted))) Fail(way + ": band " + std::to_string(b) + " is wrong");
  }

  const int64_t rows, width;
  const int steps;
  Grid start, end;
};

class RawBands {
 public:
  RawBands(const Work& work, int bands, int devices) : work_(work), h_(work.rows / bands) {
    for (int d = 0; d < devices; ++d) {
      Choose(d);
      for (int peer = 0; peer < devices; ++peer) {
        if (peer != d) (void)cudaDeviceEnablePeerAccess(peer, 0);
      }
      (void)cudaGetLastError();  // already enabled
    }
    for (int b = 0; b < bands; ++b) {
      Band band;
      band.device = Choose(b % devices);
      for (uint32_t*& side : band.u) side = MakeDeviceMemory<uint32_t>(static_cast<size_t>((h_ + 2) * work.width));
      band.stream = MakeStream(), band.copies = MakeStream();
      for (cudaEvent_t* event : {&band.edges[0], &band.edges[1], &band.halos, &band.done}) *event = MakeEvent();
      bands_.push_back(band);
    }
  }
  RawBands(const RawBands&) = delete;
  ~RawBands() {
    for (const cudaGraphExec_t exec : graphs_) {
      if (exec != nullptr) cudaGraphExecDestroy(exec);
    }
    for (const Band& band : bands_) {
      for (uint32_t* side : band.u) cudaFree(side);
      cudaStreamDestroy(band.stream), cudaStreamDestroy(band.copies);
    }
  }

  // All steps, submitted one by one, or as graphs of kUnroll.
  Sample Run(Halos halos, bool as_graphs) {
    const int bands = static_cast<int>(bands_.size());
    for (int b = 0; b < bands; ++b) {
      const std::span<const uint32_t> from = work_.Band(work_.start, b, bands);
      for (uint32_t* side : At(b).u) {
        Check(cudaMemcpy(side, from.data(), from.size_bytes(), cudaMemcpyHostToDevice), "setting a band");
      }
    }
    const cudaGraphExec_t graph = as_graphs ? GraphOf(halos) : nullptr;
    const Clock::time_point begin = Clock::now();
    if (as_graphs) {
      Choose(0);
      for (int s = 0; s < work_.steps; s += kUnroll) Check(cudaGraphLaunch(graph, At(0).stream), "launching");
    } else {
      Submit(halos, work_.steps);
    }
    const Clock::time_point submitted = Clock::now();
    for (int b = 0; b < bands; ++b) {
      Check(cudaStreamSynchronize(At(b).stream), "waiting");
      Check(cudaStreamSynchronize(At(b).copies), "waiting");
    }
    const Clock::time_point end = Clock::now();
    for (int b = 0; b < bands; ++b) {
      Grid found(static_cast<size_t>((h_ + 2) * work_.width));
      Check(cudaMemcpy(found.data(), At(b).u[work_.steps % 2], found.size() * 4, cudaMemcpyDeviceToHost), "reading");
      work_.CheckBand("by hand", found, b, bands);
    }
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  struct Band {
    int device = 0;
    std::array<uint32_t*, 2> u{};
    cudaStream_t stream = nullptr, copies = nullptr;
    std::array<cudaEvent_t, 2> edges{};  // of even and odd steps
    cudaEvent_t halos = nullptr, done = nullptr;
  };
  Band& At(int b) { return bands_[static_cast<size_t>(b)]; }

  static void Wait(cudaStream_t stream, cudaEvent_t event) { Check(cudaStreamWaitEvent(stream, event, 0), "waiting"); }
  static void Note(cudaEvent_t event, cudaStream_t stream) { Check(cudaEventRecord(event, stream), "recording"); }

  // Nothing is at work before the first step, or what is comes before the graph in its stream.
  void Submit(Halos halos, int steps) {
    for (int s = 0; s < steps; ++s) {
      halos == Halos::kReads ? Read(s, s == 0) : Copy(s, s == 0, halos == Halos::kOwn);
    }
  }

  void Copy(int s, bool first, bool own_stream) {
    const int bands = static_cast<int>(bands_.size());
    const size_t row = static_cast<size_t>(work_.width), from = static_cast<size_t>(s % 2), to = 1 - from;
    for (int b = 0; b < bands; ++b) {
      Band& band = At(b);
      Choose(band.device);
      if (own_stream && !first) Wait(band.stream, band.halos);
      Compute(band, from, 1, 1);
      Compute(band, from, h_, 1);
      Note(band.edges[0], band.stream);
    }
    for (int b = 0; b < bands; ++b) {
      Band& band = At(b);
      Choose(band.device);
      const cudaStream_t stream = own_stream ? band.copies : band.stream;
      if (own_stream && !first) Wait(stream, band.done);  // the last step has read the halo
      const auto fetch = [&](int of, int64_t source_row, int64_t target_row) {
        if (of < 0 || of >= bands) return;
        Wait(stream, At(of).edges[0]);
        Check(cudaMemcpyAsync(band.u[to] + target_row * work_.width, At(of).u[to] + source_row * work_.width, row * 4,
                              cudaMemcpyDefault, stream),
              "copying a halo");
      };
      if (!own_stream) Compute(band, from, 2, h_ - 2);
      fetch(b - 1, h_, 0);
      fetch(b + 1, 1, h_ + 1);
      if (own_stream) Note(band.halos, stream);
      if (own_stream) Compute(band, from, 2, h_ - 2);
      Note(band.done, band.stream);
    }
    // A halo may be overwritten only when the step that read it has ended; the edges of the next step come after.
    for (int b = 0; !own_stream && b < bands; ++b) {
      for (const int other : {b - 1, b + 1}) {
        if (other >= 0 && other < bands) Wait(At(b).stream, At(other).done);
      }
    }
  }

  // Edges of a step follow those of the step before, the neighbours' too, which read what they overwrite.
  void Read(int s, bool first) {
    const int bands = static_cast<int>(bands_.size());
    const auto from = static_cast<size_t>(s % 2);
    for (int b = 0; b < bands; ++b) {
      Band& band = At(b);
      Choose(band.device);
      for (const int of : {b - 1, b + 1}) {
        if (of >= 0 && of < bands && !first) Wait(band.copies, At(of).edges[1 - from]);
      }
      if (!first) Wait(band.copies, band.done);
      const uint32_t* const above = b == 0 ? band.u[from] : At(b - 1).u[from] + h_ * work_.width;
      const uint32_t* const below =
          b + 1 == bands ? band.u[from] + (h_ + 1) * work_.width : At(b + 1).u[from] + work_.width;
      RawEdges<<<dim3(static_cast<unsigned>((work_.width + 255) / 256), 2), 256, 0, band.copies>>>(
          band.u[from], band.u[1 - from], above, below, h_, work_.width);
      if (!first) Wait(band.stream, band.edges[1 - from]);
      Compute(band, from, 2, h_ - 2);
      Note(band.edges[from], band.copies);
      Note(band.done, band.stream);
    }
  }

  cudaGraphExec_t GraphOf(Halos halos) {
    cudaGraphExec_t& exec = graphs_[static_cast<size_t>(halos)];
    if (exec != nullptr) return exec;
    Choose(0);
    const cudaStream_t main = At(0).stream;
    std::vector<cudaEvent_t> ends;
    Check(cudaStreamBeginCapture(main, cudaStreamCaptureModeRelaxed), "capturing");
    const cudaEvent_t fork = MakeEvent();
    Note(fork, main);
    for (const Band& band : bands_) {
      if (band.stream != main) Wait(band.stream, fork);
      Wait(band.copies, fork);
    }
    Submit(halos, kUnroll);
    for (const Band& band : bands_) {
      Choose(band.device);
      for (const cudaStream_t stream : {band.stream, band.copies}) {
        if (stream != main) Note(ends.emplace_back(MakeEvent()), stream);
      }
    }
    Choose(0);
    for (const cudaEvent_t end : ends) Wait(main, end);
    cudaGraph_t graph = nullptr;
    Check(cudaStreamEndCapture(main, &graph), "capturing");
    Check(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
    Check(cudaGraphUpload(exec, main), "uploading");
    Check(cudaStreamSynchronize(main), "uploading");
    cudaGraphDestroy(graph);
    return exec;
  }

  void Compute(const Band& band, size_t from, int64_t y, int64_t rows) {
    const int64_t at = y * work_.width;
    const dim3 grid(static_cast<unsigned>((work_.width + 255) / 256),
                    static_cast<unsigned>((rows + kRows - 1) / kRows));
    RawHeat<<<grid, 256, 0, band.stream>>>(band.u[from] + at, band.u[1 - from] + at, rows, work_.width);
  }

  const Work& work_;
  const int64_t h_;
  std::vector<Band> bands_;
  std::array<cudaGraphExec_t, 3> graphs_{};  // of each of Halos
};

class PenstockBands {
 public:
  PenstockBands(ps::Runtime& runtime, const Work& work, int bands, ps::Mode mode, bool copies)
      : work_(work), bands_(bands) {
    std::vector<ps::DeviceShare> shares;
    for (int b = 0; b < bands; ++b) shares.emplace_back(b % static_cast<int>(runtime.devices().size()));
    const ps::Sharding cut = ps::Blocked(0, shares);
    for (auto& side : u_) {
      const std::string name = &side == &u_[0] ? "a" : "b";
      side = Must(runtime.MakeShardedState<uint32_t>(name, {work.rows, work.width}, cut, {}, ps::Halo(1)));
    }
    ps::Graph graph("heat");
    const ps::ShardedHandle<uint32_t> u[] = {graph.Use(u_[0]), graph.Use(u_[1])};
    for (int s = 0; s < kUnroll; ++s) {
      const auto scope = graph.Scope(ps::Name("step", s));
      const auto &from = u[s % 2], &to = u[1 - s % 2];
      ps::ForEachPart(graph, to, [&](const ps::ShardPart& rows) {
        if (copies) {
          graph.ParallelFor("heat", rows.extent, Heat{}, ps::ReadWithHalo(from, rows), ps::Write(to, rows));
        } else {
          graph.ParallelFor("heat", rows.extent, HeatOfRows{}, ps::ReadShifted(from, rows, -1), ps::Read(from, rows),
                            ps::ReadShifted(from, rows, 1), ps::Write(to, rows));
        }
      });
      if (copies) ps::Exchange(graph, "halo", to);
    }
    exec_ = Must(runtime.Compile(graph, {.mode = mode}));
    io_ = exec_.bindings();
  }

  Sample Run() {
    for (int b = 0; b < bands_; ++b) {
      for (const auto& side : u_) Must(side.Of(b).Set(work_.Band(work_.start, b, bands_)));
    }
    ps::Run last;
    const Clock::time_point begin = Clock::now();
    for (int s = 0; s < work_.steps; s += kUnroll) last = Must(exec_.Launch(io_));
    const Clock::time_point submitted = Clock::now();
    Must(last.Wait());
    const Clock::time_point end = Clock::now();
    for (int b = 0; b < bands_; ++b) {
      Grid found(work_.Band(work_.start, b, bands_).size(), 0x5A5A5A5A);
      Must(u_[0].Of(b).Read(found));
      work_.CheckBand("Penstock", found, b, bands_);
    }
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const Work& work_;
  const int bands_;
  std::array<ps::ShardedState<uint32_t>, 2> u_;
  ps::Executable exec_;
  ps::Bindings io_;
};

int Main(const Options& options) {
  int count = 0;
  if (WhyNoDevice().empty()) Check(cudaGetDeviceCount(&count), "counting devices");
  if (count < 2) {
    const Work work(24, 32, 2 * kUnroll);
    ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host:2"}));
    for (const ps::Mode mode : {ps::Mode::kStream, ps::Mode::kGraph}) {
      PenstockBands(runtime, work, 4, mode, /*copies=*/false).Run();
      PenstockBands(runtime, work, 4, mode, /*copies=*/true).Run();
    }
    Report("Bands on two GPUs")
        .Skip("fewer than two GPUs", "On host devices the Penstock half gave the right results.");
    return 0;
  }
  Report report("Bands on two GPUs");
  ps::Runtime two = Must(ps::Runtime::Create({.devices = "cuda:0,1"})),
              one = Must(ps::Runtime::Create({.devices = "cuda:0"}));
  for (const int64_t n : options.quick ? std::vector<int64_t>{256} : std::vector<int64_t>{4096, 8192}) {
    const Work work(n, n, options.quick ? kUnroll : 4 * kUnroll);
    const double scale = 1.0 / work.steps;
    PenstockBands whole(one, work, 1, ps::Mode::kGraph, /*copies=*/true);
    for (const int bands : n > 4096 ? std::vector<int>{2} : std::vector<int>{2, 8}) {
      RawBands raw(work, bands, 2), alone(work, 1, 1);
      PenstockBands streams(two, work, bands, ps::Mode::kStream, false),
          graphs(two, work, bands, ps::Mode::kGraph, false), exchanged(two, work, bands, ps::Mode::kGraph, true);
      std::vector<Way> ways;
      for (const auto& [halos, name] : {std::pair(Halos::kOwn, "copies on streams of their own"),
                                        std::pair(Halos::kSame, "copies on the bands' streams"),
                                        std::pair(Halos::kReads, "kernels that read the neighbour's row")}) {
        ways.push_back({Kind::kRaw, std::string("by hand, ") + name, [&, halos] { return raw.Run(halos, false); }});
        ways.push_back(
            {Kind::kRaw, std::string("by hand in one graph, ") + name, [&, halos] { return raw.Run(halos, true); }});
      }
      ways.push_back({Kind::kScale, "Penstock on streams", [&] { return streams.Run(); }});
      ways.push_back({Kind::kScale, "Penstock, exchanged halos", [&] { return exchanged.Run(); }});
      ways.push_back({Kind::kPenstock, "Penstock", [&] { return graphs.Run(); }});
      ways.push_back({Kind::kScale, "by hand, one band on one GPU", [&] { return alone.Run(Halos::kSame, true); }});
      ways.push_back({Kind::kScale, "Penstock, one band on one GPU", [&] { return whole.Run(); }});
      Measure(ways, 1, options.repeats);
      const std::string name = std::to_string(n) + " x " + std::to_string(n) + ", " + std::to_string(bands) + " bands";
      const Spread found = SpreadOf(Find(ways, "Penstock"), &Sample::total, scale);
      report.Compare(name + ", a step; raw: the best by hand", "us",
                     SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, scale), found, bands == 2 ? 1 : 1.05);
      report.Compare(name + ", a step; raw: one GPU, Penstock", "us", SpreadOf(ways.back(), &Sample::total, scale),
                     found, n > 4096 ? 1 / 1.9 : 0);
      report.Details(name, "us", ways, scale);
    }
  }
  report.Note("Medians of " + std::to_string(options.repeats) + " rounds of 80 steps, the ways in turn, on two " +
              two.devices()[0].description + "; the grid is checked after each round.");
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(
        bench::ParseOptions(argc, argv, "bands", "The heat equation in bands on two GPUs, by hand and with Penstock."));
  });
}

// A Cholesky factorization in FP64 on one GPU and on two: 16 x 16 tiles, the steps cuSOLVER's and cuBLAS's. By hand
// (raw.cuh) against Penstock (penstock.cuh), the same calls (steps.cuh) on the same memory (matrix.cuh), with cuBLAS
// workspaces of one size.
//
// By hand there are graphs captured from more and fewer streams, and the same streams without a graph; the best counts.
// Columns of tiles are dealt round to two GPUs. For orientation: the chain that every way has to go through (potrf, the
// trsm and the syrk below it, 16 times), which is a floor, and one call of cuSOLVER for the whole matrix. The factor is
// checked after each run. Timed: from before the launch to its return (submit), and until the work is done (total).
//
// Without a GPU the Penstock half runs on host devices, for its results only.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "matrix.cuh"
#include "penstock.cuh"
#include "raw.cuh"

namespace bench {
namespace {

// All ways on so many GPUs. Ways that compete have the number of GPUs for their group.
class OnGpus {
 public:
  OnGpus(ps::Runtime& runtime, int size, int devices)
      : devices_(devices), matrix_(size, devices), block_(FindFactorBlock(matrix_).Find()) {
    for (const Streams& streams : {Streams{4, 8}, Streams{8, 24}, Streams{16, 48}}) {
      raw_.push_back(std::make_unique<RawTiles>(matrix_, block_.size, streams));
      raw_names_.push_back(std::to_string(1 + streams.urgent + streams.others) + " streams a GPU");
    }
    const auto penstock = [&](const std::string& name, ps::Mode mode, int lanes) {
      penstock_.push_back(std::make_unique<PenstockOnGpus>(
          runtime, matrix_, block_.size, ps::CompileOptions{.slots = 1, .mode = mode, .max_lanes = lanes}));
      penstock_names_.push_back(name);
    };
    penstock("Penstock", ps::Mode::kGraph, 32);
    penstock("Penstock, 16 lanes", ps::Mode::kGraph, 16);
    penstock("Penstock, 64 lanes", ps::Mode::kGraph, 64);
    penstock("Penstock on streams", ps::Mode::kStream, 32);
    if (devices == 1) untiled_ = std::make_unique<Untiled>(matrix_);
  }

  void AddTo(std::vector<Way>& ways) {
    const auto add = [&](Kind kind, const std::string& name, std::function<Sample()> run) {
      ways.push_back({kind, name + Suffix(), std::move(run), devices_});
    };
    for (size_t r = 0; r < raw_.size(); ++r) {
      add(Kind::kRaw, "by hand in one graph, " + raw_names_[r], [raw = raw_[r].get()] { return raw->Run(true); });
    }
    for (size_t r = 0; r + 1 < raw_.size(); ++r) {
      add(Kind::kRaw, "by hand on streams, " + raw_names_[r], [raw = raw_[r].get()] { return raw->Run(false); });
    }
    for (size_t p = 0; p < penstock_.size(); ++p) {
      add(p == 0 ? Kind::kPenstock : Kind::kScale, penstock_names_[p],
          [penstock = penstock_[p].get()] { return penstock->Run(); });
    }
    if (devices_ != 1) return;
    add(Kind::kScale, "cuSOLVER, one call", [this] { return untiled_->Run(); });
    add(Kind::kFloor, "the chain alone", [this] { return raw_[0]->RunChain(); });
  }
  std::string Suffix() const { return devices_ == 1 ? ", one GPU" : ", two GPUs"; }
  std::string Words() const {
    return "potrf in blocks of " + std::to_string(block_.size) + " takes " +
           std::to_string(static_cast<int>(block_.us)) + " us. " + penstock_[0]->first_run();
  }

 private:
  const int devices_;
  Matrix matrix_;
  const FactorBlock block_;
  std::vector<std::unique_ptr<RawTiles>> raw_;
  std::vector<std::unique_ptr<PenstockOnGpus>> penstock_;
  std::unique_ptr<Untiled> untiled_;
  std::vector<std::string> raw_names_, penstock_names_;
};

void MeasureSize(Report& report, const Options& options, int size, std::vector<ps::Runtime>& runtimes) {
  std::vector<std::unique_ptr<OnGpus>> all;
  std::vector<Way> ways;
  const std::string name = "16 x 16 tiles of " + std::to_string(size);
  for (size_t d = 0; d < runtimes.size(); ++d) {
    all.push_back(std::make_unique<OnGpus>(runtimes[d], size, static_cast<int>(d) + 1));
    all.back()->AddTo(ways);
    report.Note(name + all.back()->Suffix() + ": " + all.back()->Words() + ".");
  }
  Measure(ways, 2, options.repeats);
  const auto total = [](const Way& way) { return SpreadOf(way, &Sample::total, 0.001); };
  for (const auto& on : all) {
    const int devices = on == all.front() ? 1 : 2;
    const Way& penstock = Find(ways, "Penstock" + on->Suffix());
    report.Compare(name + on->Suffix() + "; raw: the best by hand", "ms",
                   total(Best(ways, Kind::kRaw, &Sample::total, devices)), total(penstock), 1);
    report.Compare(name + on->Suffix() + ", a launch; raw: the fastest launch by hand", "us",
                   SpreadOf(Best(ways, Kind::kRaw, &Sample::submit, devices), &Sample::submit, 1),
                   SpreadOf(penstock, &Sample::submit, 1), 0);
  }
  if (all.size() > 1) {
    report.Compare(name + ", two GPUs; raw: Penstock on one", "ms", total(Find(ways, "Penstock, one GPU")),
                   total(Find(ways, "Penstock, two GPUs")), size >= 1024 ? 1 / 1.6 : 0);
    report.Compare(name + ", by hand on two GPUs; raw: by hand on one", "ms",
                   total(Best(ways, Kind::kRaw, &Sample::total, 1)), total(Best(ways, Kind::kRaw, &Sample::total, 2)),
                   0);
  }
  report.Details(name, "ms", ways, 0.001);
}

int Main(const Options& options) {
  Report report("Cholesky factorization in tiles");
  const std::string missing = WhyNoDevice();
  if (!missing.empty()) {
    for (const int devices : {1, 2}) {
      RunOnHostDevices(devices, ps::Mode::kGraph);
      RunOnHostDevices(devices, ps::Mode::kStream);
    }
    report.Skip(missing, "On host devices the Penstock half gave the right results.");
    return 0;
  }
  int count = 0;
  Check(cudaGetDeviceCount(&count), "counting devices");
  std::vector<ps::Runtime> runtimes;
  runtimes.push_back(Must(ps::Runtime::Create({.devices = "cuda:0"})));
  if (count > 1) runtimes.push_back(Must(ps::Runtime::Create({.devices = "cuda:0,1"})));
  for (const int size : options.quick ? std::vector<int>{64} : std::vector<int>{512, 1024}) {
    MeasureSize(report, options, size, runtimes);
  }
  report.Note("FP64. Medians of " + std::to_string(options.repeats) + " rounds, the ways in turn, on " +
              runtimes.back().devices()[0].description + "; the factor is checked after each.");
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(bench::ParseOptions(argc, argv, "tiled_cholesky",
                                           "A Cholesky factorization in tiles, by hand and with Penstock."));
  });
}

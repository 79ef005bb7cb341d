// penstock bench: what copies, launches and memory of this machine's devices give.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "src/base/file.h"
#include "src/cli/command_line.h"
#include "src/cli/measure/bench.h"
#include "src/cli/measure/processor.h"
#include "src/cli/measure/progress.h"

namespace penstock::cli {
namespace {

using measure::Part;

struct BenchArguments {
  std::string devices, csv;
  std::vector<std::string> sizes, only;
  bool quick = false;
};

constexpr int64_t kMostCopyBytes = int64_t{1} << 40;

// "64K", "64KiB" and "65536" are the same; 0: it is none.
int64_t SizeOfText(const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count < 1) return 0;
  const std::string unit(end, text.data() + text.size());
  static constexpr const char* kUnits[] = {"", "K", "M", "G"};
  for (size_t i = 0; i < std::size(kUnits); ++i) {
    const std::string letter = kUnits[i];
    if (unit != letter && (letter.empty() || unit != letter + "iB")) continue;
    const int64_t factor = int64_t{1} << (10 * i);
    return count <= kMostCopyBytes / factor ? count * factor : 0;
  }
  return 0;
}

std::string WhyNoSize(const std::string& text) {
  if (SizeOfText(text) > 0) return "";
  return absl::StrCat("'", text, "' is no size of a copy; write 4096, 4K, 16M or 1G, up to 1024G");
}

bool IsAsked(Part part, const BenchArguments& arguments) {
  const std::string name = measure::kPartNames[static_cast<size_t>(part)];
  return arguments.only.empty() ||
         std::find(arguments.only.begin(), arguments.only.end(), name) != arguments.only.end();
}

bool HasCuda(const std::vector<Device>& devices) {
  return std::any_of(devices.begin(), devices.end(), [](const Device& device) { return device.is_cuda; });
}

nlohmann::json BenchJson(const std::vector<Device>& devices, const std::vector<measure::Figure>& figures) {
  nlohmann::json listed = nlohmann::json::array();
  for (const Device& device : devices) {
    listed.push_back({{"name", device.name},
                      {"description", device.description},
                      {"is_cuda", device.is_cuda},
                      {"memory_bytes", device.memory_bytes}});
  }
  return {{"host", measure::ProcessorName()},
          {"devices", std::move(listed)},
          {"host_devices_only", !HasCuda(devices)},
          {"figures", measure::FiguresJson(figures)}};
}

absl::Status RunBench(const BenchArguments& arguments, Console& console) {
  if (!arguments.csv.empty()) PENSTOCK_RETURN_IF_ERROR(base::CheckWritable("table", arguments.csv));
  measure::Progress progress(console);
  measure::BenchOptions options{.quick = arguments.quick,
                                .step = [&](const std::string& what) { progress.Step(what); }};
  if (arguments.quick) options.effort = measure::kQuickEffort;
  for (const std::string& size : arguments.sizes) options.sizes.push_back(SizeOfText(size));
  PENSTOCK_ASSIGN_OR_RETURN(Runtime runtime, Runtime::Create({.devices = arguments.devices}));
  const std::vector<Device>& devices = runtime.devices();
  if (!console.json && !HasCuda(devices)) console.out << measure::kHostDevicesOnly << '\n';
  std::vector<measure::Figure> figures;
  for (const Part part : {Part::kCopies, Part::kPeers, Part::kLaunches, Part::kMemory}) {
    if (!IsAsked(part, arguments)) continue;
    PENSTOCK_RETURN_IF_ERROR(measure::MeasurePart(runtime, part, options, figures));
    progress.Step("");
    if (console.json) continue;
    const std::string text = measure::PartText(part, devices, figures);
    console.out << '\n' << (text.empty() ? "Copies between devices: there is only one device\n" : text) << std::flush;
  }
  if (console.json) console.out << BenchJson(devices, figures).dump(2) << '\n';
  if (arguments.csv.empty()) return absl::OkStatus();
  return base::WriteFile("table", arguments.csv, measure::FiguresCsv(figures));
}

}  // namespace

void AddBench(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<BenchArguments>();
  CLI::App* const bench = app.add_subcommand("bench", "Measures copies, launches and memory of this machine's devices");
  bench->add_option("--devices", arguments->devices, "As in \"cuda:0,1\" or \"host:2\"; all CUDA devices by default");
  bench->add_option("--sizes", arguments->sizes, "Sizes of copies, as in 4K,1M,1G")
      ->delimiter(',')
      ->check(CLI::Validator(WhyNoSize, "SIZE"));
  bench->add_option("--only", arguments->only, "What to measure, of copies, peers, launches, memory")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(measure::kPartNames), std::end(measure::kPartNames))));
  bench->add_flag("--quick", arguments->quick, "Small copies and few repeats, for a smoke run");
  bench->add_option("--csv", arguments->csv, "Write the figures to this file too, a line for each");
  bench->callback([arguments, &action] {
    action = [arguments](Console& console) {
      const absl::Status status = RunBench(*arguments, console);
      return status.ok() ? kDone : console.Fail(status);
    };
  });
}

}  // namespace penstock::cli

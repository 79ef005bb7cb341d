// photos: finds the edges in a folder of photographs. Options, folders and devices are checked before anything is
// started; then the job, the table, the trace.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "atomic_file.h"
#include "catalogue.h"
#include "errors.h"
#include "job.h"
#include "names.h"
#include "options.h"
#include "penstock/runtime.h"
#include "progress.h"
#include "report.h"

namespace photos {
namespace {

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "photos: %s\n", std::string(status.message()).c_str());
}

int Complain(const absl::Status& status, int exit_code) {
  Complain(status);
  return exit_code;
}

// Everything that can be refused before work has begun, but for the devices.
absl::Status CheckFolders(const Options& options) {
  if (absl::Status status = PrepareOutputFolder(options.output); !status.ok()) return status;
  if (IsSameFolder(options.input, options.output)) {
    return Error(absl::StatusCode::kInvalidArgument,
                 absl::StrCat("the output folder ", Quoted(options.output), " is the input folder"),
                 "the next run would take edge pictures for photographs", "name another folder");
  }
  // Opens a hidden file beside it; it goes at once.
  return options.trace.empty() ? absl::OkStatus() : AtomicFile::Create(options.trace).status();
}

// Whole passes where there is one: fewer pictures would be others than those they are compared with.
int64_t PicturesToCompare(const Options& options, const Catalogue& catalogue) {
  const auto pass = static_cast<int64_t>(catalogue.photos.size());
  if (options.compare < pass) return options.compare;
  return std::min<int64_t>(options.compare / pass, options.repeat) * pass;
}

// The table's columns: the job, and the serial one to compare with.
struct Outcome {
  JobResult job;
  std::vector<Column> columns;
};

Outcome RunJobs(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime) {
  const int64_t total = static_cast<int64_t>(catalogue.photos.size()) * options.repeat;
  Outcome outcome;
  {
    Progress progress(stderr, total);
    auto show = [&](int64_t done, int64_t skipped) { progress.Update(done, skipped); };
    outcome.job = options.serial ? RunSerial(options, catalogue, runtime, total, show)
                                 : RunPipelined(options, catalogue, runtime, show);
  }
  outcome.columns.push_back({options.serial ? "serial" : "pipelined", Summarize(outcome.job.measurement)});
  if (options.serial || options.compare == 0 || !outcome.job.status.ok()) return outcome;
  const JobResult serial =
      RunSerial(options, catalogue, runtime, PicturesToCompare(options, catalogue), [](int64_t, int64_t) {});
  outcome.job.status = serial.status;
  outcome.columns.push_back({"serial", Summarize(serial.measurement)});
  return outcome;
}

int Run(const Options& options) {
  absl::StatusOr<Catalogue> catalogue = ReadCatalogue(options.input);
  if (!catalogue.ok()) return Complain(catalogue.status(), kExitUsage);
  if (absl::Status status = CheckFolders(options); !status.ok()) return Complain(status, kExitUsage);
  penstock::RuntimeOptions runtime_options;
  runtime_options.devices = options.devices;
  runtime_options.workers = 1;  // hands finished runs on; the job has threads of its own to decode and encode
  // What "penstock tune" may change, unless a flag states it.
  runtime_options.settings.graphs["edges"].slots = 8;
  runtime_options.settings.stages["decode"].workers = options.workers;
  runtime_options.settings.stages["encode"].workers = options.workers;
  absl::StatusOr<penstock::Runtime> runtime = penstock::Runtime::Create(std::move(runtime_options));
  if (!runtime.ok()) return Complain(runtime.status(), kExitUsage);

  for (const absl::Status& status : catalogue->refused) Complain(status);
  if (catalogue->photos.empty()) {
    return Complain(absl::NotFoundError("no file of the folder is a photograph"), kExitSkipped);
  }
  const Outcome outcome = RunJobs(options, *catalogue, &*runtime);
  for (const absl::Status& status : outcome.job.skipped) Complain(status);
  std::fputs(FormatTable(outcome.columns).c_str(), stdout);
  if (!options.trace.empty() && outcome.job.trace != nullptr) {
    if (absl::Status status = outcome.job.trace->WriteChrome(options.trace); !status.ok()) {
      return Complain(status, kExitFailed);
    }
  }
  if (!outcome.job.status.ok()) return Complain(outcome.job.status, kExitFailed);
  return catalogue->refused.empty() && outcome.job.skipped.empty() ? kExitDone : kExitSkipped;
}

int Main(int argc, char** argv) {
  const ParseOutcome outcome = ParseOptions(argc, argv);
  if (outcome.options.has_value()) return Run(*outcome.options);
  std::fputs(outcome.text.c_str(), outcome.exit_code == kExitDone ? stdout : stderr);
  return outcome.exit_code;
}

}  // namespace
}  // namespace photos

int main(int argc, char** argv) { return photos::Main(argc, argv); }

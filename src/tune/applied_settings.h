// AppliedSettings: the settings of a runtime, which fill in what its program left open, and a list of that.
//
// Ownership: belongs to the runtime's core.
// Threads:   thread-safe.
// Locks:     mu_, a leaf.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/compile_options.h"
#include "penstock/settings.h"
#include "src/base/mutex.h"

namespace penstock::tune {

class AppliedSettings {
 public:
  explicit AppliedSettings(Settings settings) : settings_(std::move(settings)) {}
  // Those of the file in PENSTOCK_SETTINGS, over the option. Errors: Settings::Read's, and InvalidArgument for a value
  // of the option that no file may have.
  static absl::StatusOr<Settings> Wanted(const Settings& option);

  // What to take in place of an option of the program, as penstock/settings.h says.
  int Workers(int option);
  int SubmissionThreads(int option);
  int StagingThreads(int option);
  int64_t StagingChunkBytes(int64_t option);
  void Fill(std::string_view graph, CompileOptions& options);
  int SlotsOfPipeline(std::string_view graph, int option);
  int StageWorkers(std::string_view stage, int option);
  int Window(std::string_view pipeline, int option);

  // The keys of the settings that had an effect, or would have had one. Of many thousands, the first ones.
  std::vector<std::string> open() const;
  // The graphs, stages and pipelines that the settings name and nothing has asked for, as `graph "x"`.
  std::vector<std::string> unused() const;

 private:
  template <class T, class Value>
  T Choose(const char* kind, std::string_view name, const char* field, T option, T left_open,
           const std::optional<Value>& setting);

  const Settings settings_;
  mutable base::Mutex mu_;
  std::map<std::string, bool> open_ ABSL_GUARDED_BY(mu_);  // by key: left open at least once
};

}  // namespace penstock::tune

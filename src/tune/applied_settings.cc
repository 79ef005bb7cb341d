#include "src/tune/applied_settings.h"

#include <cstddef>
#include <cstdint>

#include "penstock/pipeline.h"
#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/tune/settings_key.h"

namespace penstock::tune {
namespace {

// A program that names its graphs by number, say, does not fill the memory with them.
constexpr size_t kMostOpenKeys = 10000;

// The part with the name, or one in which all is open.
template <class Part>
Part PartNamed(const std::map<std::string, Part>& parts, std::string_view name) {
  const auto found = parts.find(std::string(name));
  return found == parts.end() ? Part() : found->second;
}

}  // namespace

absl::StatusOr<Settings> AppliedSettings::Wanted(const Settings& option) {
  const absl::StatusOr<Settings> valid = Settings::FromText(option.Text());
  if (!valid.ok()) return base::Prefixed("RuntimeOptions::settings", valid.status());
  const std::optional<std::string> path = base::Variable("PENSTOCK_SETTINGS");
  if (!path) return option;
  const absl::StatusOr<Settings> read = Settings::Read(*path);
  if (!read.ok()) return base::Prefixed("PENSTOCK_SETTINGS", read.status());
  return read->Over(option);
}

template <class T, class Value>
T AppliedSettings::Choose(const char* kind, std::string_view name, const char* field, T option, T left_open,
                          const std::optional<Value>& setting) {
  const bool is_open = option == left_open;
  {
    base::MutexLock lock(mu_);
    std::string key = SettingsKey{kind, std::string(name), field}.Text();
    const auto known = open_.find(key);
    if (known != open_.end()) known->second = known->second || is_open;
    else if (open_.size() < kMostOpenKeys) open_.emplace(std::move(key), is_open);
  }
  return is_open && setting ? T(*setting) : option;
}

int AppliedSettings::Workers(int option) { return Choose("runtime", "", "workers", option, 0, settings_.workers); }

int AppliedSettings::SubmissionThreads(int option) {
  if (base::Variable("PENSTOCK_SUBMISSION_THREADS")) return option;
  return Choose("runtime", "", "submission_threads", option, -1, settings_.submission_threads);
}

int AppliedSettings::StagingThreads(int option) {
  return Choose("runtime", "", "staging_threads", option, 0, settings_.staging_threads);
}

int64_t AppliedSettings::StagingChunkBytes(int64_t option) {
  return Choose("runtime", "", "staging_chunk_bytes", option, int64_t{0}, settings_.staging_chunk_bytes);
}

void AppliedSettings::Fill(std::string_view graph, CompileOptions& options) {
  const Settings::Graph set = PartNamed(settings_.graphs, graph);
  const CompileOptions open;
  options.slots = Choose("graph", graph, "slots", options.slots, open.slots, set.slots);
  options.max_lanes = Choose("graph", graph, "max_lanes", options.max_lanes, open.max_lanes, set.max_lanes);
  if (!base::Variable("PENSTOCK_MODE")) {
    options.mode = Choose("graph", graph, "mode", options.mode, open.mode, set.mode);
  }
  if (!base::Variable("PENSTOCK_RESIDENT")) {
    options.resident = Choose("graph", graph, "resident", options.resident, open.resident, set.resident);
  }
}

int AppliedSettings::SlotsOfPipeline(std::string_view graph, int option) {
  return Choose("graph", graph, "slots", option, PipelineOptions().slots_per_device,
                PartNamed(settings_.graphs, graph).slots);
}

int AppliedSettings::StageWorkers(std::string_view stage, int option) {
  return Choose("stage", stage, "workers", option, 0, PartNamed(settings_.stages, stage).workers);
}

int AppliedSettings::Window(std::string_view pipeline, int option) {
  return Choose("pipeline", pipeline, "window", option, 0, PartNamed(settings_.pipelines, pipeline).window);
}

std::vector<std::string> AppliedSettings::open() const {
  std::vector<std::string> keys;
  base::MutexLock lock(mu_);
  for (const auto& [key, is_open] : open_) {
    if (is_open) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> AppliedSettings::unused() const {
  std::vector<std::string> names;
  base::MutexLock lock(mu_);
  const auto look = [&](const char* kind, const auto& parts, const char* field) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const auto& [name, part] : parts) {
      std::string key = SettingsKey{kind, name, field}.Text();
      if (!open_.contains(key)) names.push_back(key.substr(0, key.rfind('.')));
    }
  };
  look("graph", settings_.graphs, "slots");
  look("stage", settings_.stages, "workers");
  look("pipeline", settings_.pipelines, "window");
  return names;
}

}  // namespace penstock::tune

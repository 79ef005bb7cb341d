// penstock jit: the kernels that programs have made from sources and kept on disk.
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "src/cli/command_line.h"
#include "src/cli/text.h"
#include "src/jit/cache.h"

namespace penstock::cli {
namespace {

using jit::Cache;

struct Kept {
  std::string folder;
  std::optional<Cache> cache;  // none: the folder does not exist yet
};

absl::StatusOr<Kept> OpenKept() {
  const std::optional<std::string> folder = Cache::FolderByEnvironment();
  if (!folder) {
    return absl::FailedPreconditionError(
        "no kernels are kept: PENSTOCK_JIT_CACHE is 'off', or neither it nor XDG_CACHE_HOME nor HOME names a folder");
  }
  Kept kept{.folder = *folder, .cache = {}};
  absl::StatusOr<Cache> cache = Cache::Open(*folder, Cache::kMostBytes, /*make=*/false);
  if (cache.ok()) kept.cache.emplace(*std::move(cache));
  else if (cache.status().code() != absl::StatusCode::kNotFound) return cache.status();
  return kept;
}

std::string DateOf(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32];
  if (localtime_r(&time, &parts) == nullptr) return "?";
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts)};
}

void WriteList(Console& console, const Kept& kept, const std::vector<Cache::Entry>& entries) {
  TextTable table({"<kernel", "<architecture", "size", "<last used"});
  int64_t bytes = 0;
  for (const Cache::Entry& entry : entries) {
    bytes += entry.bytes;
    table.Add({Shown(entry.kernel, 60), Shown(entry.architecture), SizeText(entry.bytes), DateOf(entry.used)});
  }
  if (!table.empty()) table.Write(console.out);
  console.out << CountText(static_cast<int64_t>(entries.size()), "kernel") << ", " << SizeText(bytes) << " of at most "
              << SizeText(Cache::kMostBytes) << ", in " << Shown(kept.folder, 200) << '\n';
}

std::vector<Cache::Entry> EntriesOf(const std::optional<Cache>& cache) {
  if (!cache) return {};
  return cache->List();
}
Cache::Cleared Cleared(const std::optional<Cache>& cache) {
  if (!cache) return {};
  return cache->Clear();
}

ExitCode List(Console& console) {
  const absl::StatusOr<Kept> kept = OpenKept();
  if (!kept.ok()) return console.Fail(kept.status());
  const std::vector<Cache::Entry> entries = EntriesOf(kept->cache);
  if (!console.json) {
    WriteList(console, *kept, entries);
    return kDone;
  }
  nlohmann::json kernels = nlohmann::json::array();
  for (const Cache::Entry& entry : entries) {
    kernels.push_back(
        {{"kernel", entry.kernel}, {"architecture", entry.architecture}, {"bytes", entry.bytes}, {"used", entry.used}});
  }
  console.out << nlohmann::json{{"folder", kept->folder}, {"kernels", std::move(kernels)}}.dump(
                     -1, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  return kDone;
}

ExitCode Clear(Console& console) {
  const absl::StatusOr<Kept> kept = OpenKept();
  if (!kept.ok()) return console.Fail(kept.status());
  const Cache::Cleared cleared = Cleared(kept->cache);
  if (console.json) {
    console.out << nlohmann::json{{"folder", kept->folder}, {"kernels", cleared.kernels}, {"bytes", cleared.bytes}}
                << '\n';
  } else {
    console.out << "removed " << CountText(cleared.kernels, "kernel") << ", " << SizeText(cleared.bytes) << ", from "
                << Shown(kept->folder, 200) << '\n';
  }
  return kDone;
}

}  // namespace

void AddJit(CLI::App& app, Action& action) {
  CLI::App* const jit = app.add_subcommand("jit", "The kernels that programs have made from sources and kept on disk");
  jit->require_subcommand(1);
  jit->add_subcommand("list", "Shows them, those used last first")->callback([&action] { action = List; });
  jit->add_subcommand("clear", "Removes them all; programs then compile their sources again")->callback([&action] {
    action = Clear;
  });
}

}  // namespace penstock::cli

// Settings: choices that make a program fast on a machine and change no result, in a file beside the program.
// "penstock tune" finds them (docs/howto/tune.md), and so does Tune (tune.h).
//
//   penstock settings 1
//   runtime.workers = 6
//   graph "blur".slots = 4
//   stage "decode".workers = 8
//   end
//
// PENSTOCK_SETTINGS=FILE gives them to a runtime. Where the file says nothing, RuntimeOptions::settings holds: a
// program's own defaults. A setting takes effect where the program left the choice open. What the program states stays,
// since its code may rest on it: as many sets of buffers as slots, a function that bears one caller only. A choice is
// open where its option has the value below, and no variable of the environment states it:
//
//   runtime.workers, runtime.staging_threads, runtime.staging_chunk_bytes     0
//   runtime.submission_threads                                               -1
//   graph "NAME".slots          CompileOptions::slots 0; PipelineOptions::slots_per_device 3, its default
//   graph "NAME".mode           CompileOptions::mode kAuto
//   graph "NAME".resident       CompileOptions::resident kOff; PENSTOCK_RESIDENT=off keeps it off
//   graph "NAME".max_lanes      CompileOptions::max_lanes 32
//   stage "NAME".workers        HostStageOptions::workers 0
//   pipeline "NAME".window      PipelineOptions::window 0
//
// Nobody can tell a default from the same value that a program states: slots_per_device 3, max_lanes 32, kOff and kAuto
// count as open in either case.
//
// All graphs of one name share a setting, and so do all stages. A pipeline goes by the name of its first Run. Settings
// are looked up when a runtime, an executable or a pipeline is made; a run costs nothing more. A name that the program
// does not have is no error: the log says so at level debug.
//
// Threads: plain values.
// Errors:  FromText, Read and Set: InvalidArgument with the line and what is wrong there; nothing of the text is used.
//          Read and Write: those of the system, with the path.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/export.h"
#include "penstock/mode.h"

namespace penstock {

struct PENSTOCK_EXPORT Settings {
  // The version of the text that Text writes. A change that old readers would misread counts it up.
  static constexpr int kVersion = 1;

  // Of graphs with one name.
  struct Graph {
    std::optional<int> slots{};  // CompileOptions::slots, 1 to 1024
    std::optional<Mode> mode{};  // CompileOptions::mode
    std::optional<Resident> resident{};  // CompileOptions::resident
    std::optional<int> max_lanes{};  // CompileOptions::max_lanes, 1 to 1024
    bool operator==(const Graph&) const = default;
  };
  // Of host stages with one name.
  struct Stage {
    std::optional<int> workers{};  // HostStageOptions::workers, 1 to 1024
    bool operator==(const Stage&) const = default;
  };
  // Of pipelines whose first Run has one name.
  struct Pipeline {
    std::optional<int> window{};  // PipelineOptions::window, 1 to 65536
    bool operator==(const Pipeline&) const = default;
  };

  std::optional<int> workers{};  // RuntimeOptions::workers, 1 to 4096
  std::optional<int> submission_threads{};  // RuntimeOptions::submission_threads, 0 to 4096
  std::optional<int> staging_threads{};  // StagingOptions::threads, 1 to 4096
  std::optional<int> staging_chunk_bytes{};  // StagingOptions::chunk_bytes, 4 KiB to 1 GiB
  std::map<std::string, Graph> graphs{};  // by name
  std::map<std::string, Stage> stages{};  // by name
  std::map<std::string, Pipeline> pipelines{};  // by name of the first Run
  bool operator==(const Settings&) const = default;

  // Reads what Text writes. Blank lines and lines that begin with '#' are skipped. The line "end" is the last, so that
  // a text that was cut off is noticed; no setting stands twice.
  static absl::StatusOr<Settings> FromText(std::string_view text);
  // Reads a file of at most 1 MiB.
  static absl::StatusOr<Settings> Read(const std::string& path);
  // One setting a line, between the line that names format and version and the line "end". In names, quotes,
  // backslashes and control characters are escaped. Equal settings have equal texts.
  std::string Text() const;
  // Writes Text to a file, as Trace::WriteChrome does.
  absl::Status Write(const std::string& path) const;
  // Sets what one line would: Set("graph \"blur\".slots", "4"). An empty value leaves the choice open again.
  absl::Status Set(std::string_view key, std::string_view value);
  // These, and where they say nothing, those of `under`.
  Settings Over(const Settings& under) const;
};

}  // namespace penstock

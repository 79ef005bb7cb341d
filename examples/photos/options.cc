// The flags, by CLI11. Its exceptions end here.
#include "options.h"

#include <algorithm>
#include <thread>

#include <CLI/CLI.hpp>

namespace photos {
namespace {

constexpr char kDescription[] =
    "Finds the edges in a folder of PNG and JPEG photographs: decodes on host threads, uploads, greys, blurs and runs\n"
    "Sobel on the devices, downloads, and writes one grey PNG a photograph, called <file>.edges.png.";

constexpr char kFooter[] =
    "Devices: cuda | cuda:0,2 | host | host:4 | a mixture joined by ';'. Without the flag PENSTOCK_DEVICES counts, "
    "then\n"
    "a GPU where there is one, else the host.\n"
    "Exit codes: 0 done; 1 done, but files were named and skipped; 2 bad usage, folder or device; 3 the job broke off.";

void Declare(CLI::App* app, Options* options) {
  app->add_option("input", options->input, "Folder with the photographs")->required();
  app->add_option("output", options->output, "Folder for the edge pictures, made if need be")->required();
  app->add_option("--slots", options->slots, "Pictures in flight on each device; 8 by default")
      ->check(CLI::Range(1, 64))
      ->default_str("8");
  app->add_option("--devices", options->devices, "Devices to use, see below");
  app->add_option("--workers", options->workers, "Host threads that decode and encode")->check(CLI::Range(1, 256));
  app->add_option("--repeat", options->repeat, "Passes over the folder")->check(CLI::Range(1, 1000000000));
  app->add_option("--blur", options->blur, "Blur passes over each picture")->check(CLI::Range(0, 1000));
  app->add_option("--compression", options->compression, "zlib level of the written files")->check(CLI::Range(0, 9));
  app->add_option("--compare", options->compare,
                  "Pictures to process once more one step at a time, for the table's serial column; 0: none")
      ->check(CLI::Range(0, 1000000));
  app->add_flag("--preload", options->preload,
                "Decode every photograph once, before the clock starts, and keep it in pinned memory; write each edge\n"
                "picture on the first pass only and check the later ones against it");
  app->add_flag("--serial", options->serial, "One slot, one worker, each step waits for the one before");
  app->add_flag("--verify", options->verify, "Compare every result with a plain single-threaded reference");
  app->add_option("--trace", options->trace, "Write a Chrome trace of the job to this file");
  app->add_option("--trace-pictures", options->trace_pictures,
                  "The trace and the table's steps cover so many pictures; the rest of the job runs untraced")
      ->check(CLI::Range(1, 1000000000));
}

ParseOutcome Usage(const std::string& message) {
  return {std::nullopt, "photos: " + message + "; see photos --help\n", kExitUsage};
}

// What CLI11's checks cannot see. A flag's value that is empty is mostly an unset variable of a script.
std::string FindMistake(const CLI::App& app, const Options& options) {
  if (options.input.empty()) return "the input folder's name is empty";
  if (options.output.empty()) return "the output folder's name is empty";
  if (app.count("--devices") > 0 && options.devices.empty()) return "--devices: the list is empty";
  if (app.count("--trace") > 0 && options.trace.empty()) return "--trace: the file's name is empty";
  if (options.serial && (app.count("--slots") > 0 || app.count("--workers") > 0)) {
    return "--serial has one slot and one worker: leave --slots and --workers out";
  }
  return "";
}

}  // namespace

int DefaultWorkers() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 2); }

ParseOutcome ParseOptions(int argc, const char* const* argv) {
  Options options;
  options.workers = DefaultWorkers();
  CLI::App app(kDescription, "photos");
  app.footer(kFooter);
  app.option_defaults()->always_capture_default();
  Declare(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help(), kExitDone};
  } catch (const CLI::Error& error) {
    return Usage(error.what());
  }
  if (std::string mistake = FindMistake(app, options); !mistake.empty()) return Usage(mistake);
  options.own_workers = app.count("--workers") > 0;
  if (options.serial) options.slots = options.workers = 1;
  return {std::move(options), "", kExitDone};
}

}  // namespace photos

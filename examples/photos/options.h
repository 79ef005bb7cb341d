// What the user asked the photo job to do.
//
// Threads: a plain value; ParseOptions is called once, by main.
// Errors:  bad usage is an outcome with exit code 2 and the text to print, never an exit in here.
#pragma once

#include <optional>
#include <string>

namespace photos {

// How the program ends.
inline constexpr int kExitDone = 0;
inline constexpr int kExitSkipped = 1;  // done, but for files that were named and left out
inline constexpr int kExitUsage = 2;    // nothing was started: usage, folders, devices
inline constexpr int kExitFailed = 3;   // the job broke off

struct Options {
  std::string input;    // folder of PNG and JPEG files
  std::string output;   // folder for the edge pictures
  std::string devices;  // the library's grammar, as in PENSTOCK_DEVICES; empty: the library's choice
  int slots = 0;        // runs in flight a device; 0: as the settings say
  int workers = 1;      // host threads that decode and encode; set to the default by ParseOptions
  bool own_workers = false;  // the user has said how many
  int repeat = 1;       // passes over the folder
  int blur = 1;         // blur passes a picture
  int compression = 1;  // zlib's level of the written PNG files
  int compare = 16;     // pictures for the serial column of the table; 0: no such column
  bool preload = false;
  bool serial = false;
  bool verify = false;
  std::string trace;  // file for a Chrome trace; empty: none
  // The table's steps come from a trace, which would grow without end: it ends after so many pictures.
  int trace_pictures = 16384;
};

// Cores less two, one at least: the threads that feed the devices need some too.
int DefaultWorkers();

// `options` is set where the program should go on; else it prints `text` (to stdout where the code is 0, as for --help)
// and exits with `exit_code`.
struct ParseOutcome {
  std::optional<Options> options;
  std::string text;
  int exit_code = kExitDone;
};
ParseOutcome ParseOptions(int argc, const char* const* argv);

}  // namespace photos

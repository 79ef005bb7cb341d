// Runs a program with variables of the environment set, and waits for its end.
//
// The program stays in this process's group, so that it may read the terminal, and the terminal's Ctrl-C reaches it
// with all that it has started. If it is killed, or a signal is passed on to it, then what it has started and left
// behind gets the signal too, whatever its group. That takes a kernel with the list "children" in /proc; without it,
// what is left behind goes on.
//
// Threads: one thread; no other may change the environment meanwhile.
// Errors:  NotFound and the like: the program cannot be started. Aborted: it failed; the message has its exit code or
//          signal. Cancelled: it was ended by SIGINT or SIGQUIT, or this process has got one of ProgramSignals',
//          however the program has ended. DeadlineExceeded: it ran too long, and was killed.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::cli {

// While it exists, signals that would end this process end what goes on instead: no further program starts. SIGINT and
// SIGQUIT are only noted, since the terminal sends them to the program too. SIGTERM and SIGHUP are passed on to the
// program that runs, and once it has ended to what it left behind; they end this process once none of these exists any
// more. Make it before what must be gone by then, such as a ScratchFolder. What was ignored before stays ignored. There
// is one at a time.
class ProgramSignals {
 public:
  ProgramSignals();
  ProgramSignals(const ProgramSignals&) = delete;
  ProgramSignals& operator=(const ProgramSignals&) = delete;
  ~ProgramSignals();
  // Returns the signals whose handling a program should find as it was.
  sigset_t ToRestore() const;

 private:
  struct Signal {
    int number;
    bool is_passed_on;
  };
  static constexpr std::array<Signal, 4> kSignals = {
      {{SIGINT, false}, {SIGQUIT, false}, {SIGTERM, true}, {SIGHUP, true}}};

  std::array<struct sigaction, kSignals.size()> before_{};
};

// A temporary folder, which goes with all that is in it.
class ScratchFolder {
 public:
  static absl::StatusOr<ScratchFolder> Make();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct ProgramRun {
  std::vector<std::string> command;  // the program, looked up in PATH, with its arguments
  // Set for it; an empty value removes the variable. Others are as in this process.
  std::vector<std::pair<std::string, std::string>> variables{};
  std::string output{};  // a file that gets its output and error; empty: this process's standard error does
  double most_seconds = 0;  // 0: it may run for ever
  bool may_end_by_interrupt = false;  // if it ends well then, all is well: a server
};

// Returns the number that its process had.
absl::StatusOr<pid_t> RunProgram(const ProgramRun& run, const ProgramSignals& signals);
// "'program'", fit for a message.
std::string NameOfProgram(const std::vector<std::string>& command);

}  // namespace penstock::cli

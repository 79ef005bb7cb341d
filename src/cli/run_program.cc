#include "src/cli/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"

extern char** environ;

namespace penstock::cli {
namespace {

// The program that runs; the signal that was meant to end this process meanwhile; and the one that was meant to end
// what goes on, which a terminal sends to the program too. For PassOn and NoteSignal.
volatile pid_t program_running = 0;
volatile std::sig_atomic_t signal_passed_on = 0, signal_noted = 0;

void NoteSignal(int signal) { signal_noted = signal; }

void PassOn(int signal) {
  signal_passed_on = signal;
  if (program_running > 0) kill(program_running, signal);
}

// So that no signal that is passed on is lost while the program starts. Returns what was blocked before.
sigset_t BlockPassedOn() {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  return before;
}

std::vector<char*> NullEnded(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWith(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    bool changed = false;
    for (const auto& [name, value] : changes) {
      changed = changed || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
    }
    if (!changed) all.emplace_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) all.push_back(absl::StrCat(name, "=", value));
  }
  return all;
}

absl::StatusOr<pid_t> StartProgram(const ProgramRun& run, const sigset_t& restored) {
  std::vector<std::string> command = run.command, variables = EnvironmentWith(run.variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (run.output.empty()) {
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, run.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const sigset_t mask = BlockPassedOn();
  posix_spawnattr_setsigdefault(&attributes, &restored);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t program = 0;
  const int error = posix_spawnp(&program, command[0].c_str(), &files, &attributes, NullEnded(command).data(),
                                 NullEnded(variables).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  program_running = error == 0 ? program : 0;
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (error == 0) return program;
  return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", NameOfProgram(run.command)));
}

// Returns false if it runs longer, and true if that cannot be told: a kernel before Linux 5.3 has no such descriptors.
bool EndsWithin(pid_t program, double seconds) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, program, 0));
  if (fd < 0) return true;
  pollfd ended{.fd = fd, .events = POLLIN, .revents = 0};
  int found = 0;
  do {
    found = poll(&ended, 1, static_cast<int>(std::min(seconds * 1e3 + 1, 1e9)));
  } while (found < 0 && errno == EINTR);
  close(fd);
  return found != 0;
}

// How it ended, as waitpid returns it.
absl::StatusOr<int> EndOf(pid_t program) {
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | WNOWAIT) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "cannot wait for the program");
  }
  program_running = 0;  // before the system may give its number to another
  int status = 0;
  while (waitpid(program, &status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "cannot wait for the program");
  }
  return status;
}

// While it exists, processes whose parents end become this process's children, in place of the system's first process.
class Subreaper {
 public:
  Subreaper() {
    prctl(PR_GET_CHILD_SUBREAPER, &before_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

// Returns this process's children in ascending order, or nothing if the kernel does not list them.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  std::sort(children.begin(), children.end());
  return children;
}

// Sends the signal to what a program that has ended leaves behind, which are the children that were not there before
// it, then to what these leave behind. What has not ended soon is killed.
void EndOrphans(const std::vector<pid_t>& before, int signal) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point impatient = Clock::now() + std::chrono::seconds(2),
                          given_up = impatient + std::chrono::seconds(1);
  std::set<pid_t> told;
  while (Clock::now() < given_up) {
    std::vector<pid_t> orphans = Children();
    std::erase_if(orphans, [&](pid_t child) { return std::binary_search(before.begin(), before.end(), child); });
    if (orphans.empty()) return;
    const bool kills = Clock::now() >= impatient;
    for (const pid_t orphan : orphans) {
      if (kills || told.insert(orphan).second) kill(orphan, kills ? SIGKILL : signal);
      waitpid(orphan, nullptr, WNOHANG);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

absl::Status StatusOfSignals() {
  if (signal_passed_on != 0) return absl::CancelledError("a signal ends this process");
  if (signal_noted != 0) return absl::CancelledError(absl::StrCat("interrupted by signal ", signal_noted));
  return absl::OkStatus();
}

absl::Status StatusOfEnd(const std::string& name, int status) {
  absl::Status signalled = StatusOfSignals();
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const std::string text = absl::StrCat(name, " was ended by signal ", signal);
    return signal == SIGINT || signal == SIGQUIT || !signalled.ok() ? absl::CancelledError(text)
                                                                    : absl::AbortedError(text);
  }
  if (!signalled.ok()) return signalled;  // the program may have handled the signal, and ended well
  if (WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(name, " ended with exit code ", WEXITSTATUS(status)));
}

}  // namespace

ProgramSignals::ProgramSignals() {
  signal_passed_on = 0;
  signal_noted = 0;
  for (size_t s = 0; s < kSignals.size(); ++s) {
    struct sigaction action = {};
    action.sa_handler = kSignals[s].is_passed_on ? PassOn : NoteSignal;
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[s].number, nullptr, &before_[s]);
    if (before_[s].sa_handler != SIG_IGN) sigaction(kSignals[s].number, &action, nullptr);
  }
}

ProgramSignals::~ProgramSignals() {
  for (size_t s = 0; s < kSignals.size(); ++s) sigaction(kSignals[s].number, &before_[s], nullptr);
  if (signal_passed_on != 0) raise(signal_passed_on);
}

sigset_t ProgramSignals::ToRestore() const {
  sigset_t set;
  sigemptyset(&set);
  for (size_t s = 0; s < kSignals.size(); ++s) {
    if (before_[s].sa_handler != SIG_IGN) sigaddset(&set, kSignals[s].number);
  }
  return set;
}

absl::StatusOr<ScratchFolder> ScratchFolder::Make() {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) parent = "/tmp";
  std::string path = (parent / "penstock-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a temporary folder in ", parent.string()));
  }
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string NameOfProgram(const std::vector<std::string>& command) {
  return absl::StrCat("'", graph::OneLine(command[0]), "'");
}

absl::StatusOr<pid_t> RunProgram(const ProgramRun& run, const ProgramSignals& signals) {
  if (run.command.empty()) return absl::InvalidArgumentError("--exec needs a program");
  PENSTOCK_RETURN_IF_ERROR(StatusOfSignals());
  const Subreaper subreaper;
  const std::vector<pid_t> children = Children();
  PENSTOCK_ASSIGN_OR_RETURN(const pid_t program, StartProgram(run, signals.ToRestore()));
  const bool late = run.most_seconds > 0 && !EndsWithin(program, run.most_seconds);
  if (late) kill(program, SIGKILL);
  PENSTOCK_ASSIGN_OR_RETURN(const int end, EndOf(program));
  if (late || signal_passed_on != 0) EndOrphans(children, late ? SIGKILL : signal_passed_on);
  if (late) {
    PENSTOCK_RETURN_IF_ERROR(StatusOfSignals());
    return absl::DeadlineExceededError(
        absl::StrFormat("%s ran for more than %.3g s, and was killed", NameOfProgram(run.command), run.most_seconds));
  }
  const bool ended_well = WIFEXITED(end) && WEXITSTATUS(end) == 0;
  if (ended_well && run.may_end_by_interrupt && signal_passed_on == 0) {
    signal_noted = 0;
    return program;
  }
  absl::Status ended = StatusOfEnd(NameOfProgram(run.command), end);
  if (!late && signal_passed_on != 0) EndOrphans(children, signal_passed_on);  // it came just now
  if (!ended.ok()) return ended;
  return program;
}

}  // namespace penstock::cli

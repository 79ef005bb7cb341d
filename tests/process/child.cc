// Starting, watching and ending children, and the main of programs that have scenarios. See child.h.
#include "tests/process/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <sstream>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// Processes that end with work in flight leave memory behind, and the search for it takes the threads that a fork's
// copy does not have for running ones.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT: the name is asan's
#endif
#endif

namespace penstock::test_support {
namespace {

constexpr char kFlag[] = "--scenario";

Scenario* first_scenario = nullptr;  // constant before any Scenario is made

// A file without a name that child and parent write and read.
class OutputFile {
 public:
  OutputFile() : file_(std::tmpfile()) {}
  ~OutputFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int fd() const { return file_ == nullptr ? -1 : fileno(file_); }
  std::string Text() const {
    std::string text;
    char piece[4096];
    for (off_t at = 0;;) {
      const ssize_t got = pread(fd(), piece, sizeof(piece), at);
      if (got <= 0) return text;
      text.append(piece, static_cast<size_t>(got));
      at += got;
    }
  }

 private:
  std::FILE* const file_;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> Environment(const std::vector<std::string>& more) {
  std::vector<std::string> out = more;  // the first of two with one name counts
  for (char** e = environ; *e != nullptr; ++e) out.emplace_back(*e);
  return out;
}

// 0, or why not.
int Start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, int output,
          pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawn(&pid, "/proc/self/exe", &files, &attributes, Pointers(arguments).data(),
                                Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

std::string FirstLine(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// A line a thread: its name, what the kernel has it wait in, and its system call (202 is a futex).
std::string Threads(pid_t pid) {
  std::ostringstream out;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
    out << "thread " << task.path().filename().string() << " '" << FirstLine(task.path() / "comm")
        << "': " << FirstLine(task.path() / "wchan") << ", system call " << FirstLine(task.path() / "syscall") << "\n";
  }
  return out.str();
}

std::string Ended(int status) {
  if (WIFEXITED(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
}

}  // namespace

Scenario::Scenario(const char* name, Body body) : name_(name), body_(body), next_(first_scenario) {
  first_scenario = this;
}

std::ostream& operator<<(std::ostream& out, const ChildResult& result) {
  return out << "the child's end: " << result.ended << "\nits output:\n" << result.output;
}

ChildResult RunInChild(const Scenario& scenario, const std::string& argument, const ChildOptions& options) {
  const OutputFile output;
  pid_t pid = -1;
  const int error =
      Start({"child", kFlag, scenario.name(), argument}, Environment(options.environment), output.fd(), pid);
  if (error != 0) return {std::string("not started: ") + std::strerror(error), ""};
  // Waits without taking the child away: until then its number, and its group's, stay its own.
  std::future<void> end = std::async(std::launch::async, [pid] {
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  });
  const bool hung = end.wait_for(options.limit) != std::future_status::ready;
  const std::string threads = hung ? Threads(pid) : "";
  kill(-pid, SIGKILL);  // on a hang the child itself, always whatever it has started
  int status = 0;
  waitpid(pid, &status, 0);
  return {hung ? "hang" : Ended(status), output.Text() + threads};
}

int RunScenario(const std::string& name, const std::string& argument) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no test, no child
  for (const Scenario* s = first_scenario; s != nullptr; s = s->next_) {
    if (name == s->name()) return s->body_(argument);
  }
  std::fprintf(stderr, "there is no scenario '%s'\n", name.c_str());
  return 127;
}

}  // namespace penstock::test_support

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], penstock::test_support::kFlag) == 0) {
    return penstock::test_support::RunScenario(argv[2], argv[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

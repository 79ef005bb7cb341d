// Scenarios that run in a process of their own, so that a test can say how a process ends: with which code or signal,
// having printed what, or not at all.
//
//   const Scenario kExitsInHostNode("exit in a host node", [](const std::string& devices) { ...; return 0; });
//   TEST(...) { EXPECT_EQ(RunInChild(kExitsInHostNode, "host:2").ended, "exit 3"); }
//
// The child is this program started anew, not forked: its main (child.cc, which takes the place of GoogleTest's) sees
// the name of a scenario and runs that instead of tests. What the scenario returns is what its main returns. Output
// goes to a file, so that no process left behind can hold up the test; the whole process group is killed at the end.
//
// Threads:   RunInChild from any thread. Scenarios are objects of static storage.
// Errors:    a child that is still there after the time limit is killed and has ended with "hang"; its output then says
//            what each of its threads was doing.
#pragma once

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

namespace penstock::test_support {

class Scenario {
 public:
  using Body = int (*)(const std::string& argument);

  // `name` is unique in the program.
  Scenario(const char* name, Body body);
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  const char* name() const { return name_; }

 private:
  friend int RunScenario(const std::string& name, const std::string& argument);
  const char* const name_;
  const Body body_;
  Scenario* const next_;
};

struct ChildOptions {
  std::vector<std::string> environment{};  // "NAME=value", on top of this process's
  std::chrono::milliseconds limit = std::chrono::seconds(60);
};

struct ChildResult {
  std::string ended;  // "exit 0", "signal 11 (Segmentation fault)", "hang", or why it could not be started
  std::string output;  // stdout and stderr, in the order written
};

std::ostream& operator<<(std::ostream& out, const ChildResult& result);

ChildResult RunInChild(const Scenario& scenario, const std::string& argument = "", const ChildOptions& options = {});

}  // namespace penstock::test_support

// Which nodes of a run may begin, for random graphs with conditional nodes in one another: against a plain interpreter
// of the same program, whatever the order in which tasks end.
#include "src/driver/host/graph_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace penstock::driver::host::graph_run_test {
namespace {

class NumberedTask final : public Task {
 public:
  NumberedTask(int number_in, RunFault* fault) : Task({fault, number_in}, 1), number(number_in) {}
  absl::Status Run(int /*chunk*/) override { return absl::OkStatus(); }
  const int number;
};

// A program: tasks, and conditional nodes that get the values of a script, one after the other.
struct Program;
struct Item {
  std::vector<int32_t> after;
  int task = -1;
  int branch = -1;
};
struct Choice {
  ConditionalKind kind = ConditionalKind::kIf;
  std::vector<Program> bodies;
  std::vector<uint32_t> script;
  size_t asked = 0;
  std::shared_ptr<uint32_t> value = std::make_shared<uint32_t>(0);
};
struct Program {
  std::vector<Item> items;
};

class Machine {
 public:
  explicit Machine(uint32_t seed) : random_(seed) { whole_ = Make(0); }

  // How often each task runs, by the plain meaning of the program.
  std::vector<int> Interpret() {
    std::vector<int> runs(static_cast<size_t>(tasks_), 0);
    Interpret(whole_, runs);
    for (Choice& choice : choices_) choice.asked = 0;
    return runs;
  }

  // The same by a GraphRun. A value is there when a task before it has run: `setter` tasks stand before each
  // conditional node and at the end of each loop's body.
  std::vector<int> Run() {
    GraphRun run(StepsOf(whole_));
    std::vector<std::unique_ptr<Task>> tasks;
    for (int32_t node = 0; node < run.count(); ++node) tasks.push_back(run.TakeWork(node).task);
    std::vector<int> runs(static_cast<size_t>(tasks_), 0);
    std::vector<int32_t> ready;
    bool ended = run.Start(ready);
    while (!ended && !ready.empty()) {
      std::swap(ready[random_() % ready.size()], ready.back());
      const int32_t node = ready.back();
      ready.pop_back();
      if (const auto* task = dynamic_cast<const NumberedTask*>(tasks[static_cast<size_t>(node)].get())) {
        const auto number = static_cast<size_t>(task->number);
        for (const int before : before_[number]) {
          EXPECT_GT(runs[static_cast<size_t>(before)], runs[number]) << "task " << number << " before " << before;
        }
        ++runs[number];
        if (sets_[number] >= 0) Ask(choices_[static_cast<size_t>(sets_[number])]);
      }
      ended = run.End(node, ready);
    }
    EXPECT_TRUE(ended) << "no task is ready, and the graph has not ended";
    EXPECT_TRUE(ready.empty()) << "the graph has ended before its tasks";
    return runs;
  }

  RunFault fault;
  int tasks() const { return tasks_; }

 private:
  static uint32_t Ask(Choice& choice) {
    const uint32_t value = choice.asked < choice.script.size() ? choice.script[choice.asked] : 0;
    ++choice.asked;
    return *choice.value = value;
  }

  int NewTask(int sets = -1) {
    before_.emplace_back();
    sets_.push_back(sets);
    return tasks_++;
  }

  Program Make(int depth) {
    Program program;
    const int count = static_cast<int>(random_() % 5);
    for (int i = 0; i < count; ++i) {
      Item item;
      for (int32_t before = 0; before < static_cast<int32_t>(program.items.size()); ++before) {
        if (random_() % 3 == 0) item.after.push_back(before);
      }
      if (depth < 3 && random_() % 3 == 0) {
        AddChoice(program, item, depth);
      } else if (random_() % 5 != 0) {
        item.task = NewTask();
      }  // otherwise a node that does nothing
      Place(program, std::move(item));
    }
    return program;
  }

  void Place(Program& program, Item item) {
    if (item.task >= 0) {
      for (const int32_t before : item.after) {
        const int task = program.items[static_cast<size_t>(before)].task;
        if (task >= 0) before_[static_cast<size_t>(item.task)].push_back(task);
      }
    }
    program.items.push_back(std::move(item));
  }

  void AddChoice(Program& program, Item& item, int depth) {
    const auto number = static_cast<int>(choices_.size());
    choices_.emplace_back();
    Place(program, {.after = item.after, .task = NewTask(number)});
    item.after = {static_cast<int32_t>(program.items.size()) - 1};
    item.branch = number;
    const auto kind = static_cast<ConditionalKind>(random_() % 3);
    const size_t bodies = kind == ConditionalKind::kWhile ? 1 : 1 + random_() % (kind == ConditionalKind::kIf ? 2 : 4);
    std::vector<Program> made;
    for (size_t b = 0; b < bodies; ++b) {
      made.push_back(Make(depth + 1));
      if (kind != ConditionalKind::kWhile) continue;
      Item last{.after = {}, .task = NewTask(number)};
      for (int32_t i = 0; i < static_cast<int32_t>(made[b].items.size()); ++i) last.after.push_back(i);
      Place(made[b], std::move(last));
    }
    Choice& choice = choices_[static_cast<size_t>(number)];
    choice.kind = kind;
    choice.bodies = std::move(made);
    for (int i = 0; i < 12; ++i) choice.script.push_back(static_cast<uint32_t>(random_() % 5));
  }

  void Interpret(const Program& program, std::vector<int>& runs) {
    for (const Item& item : program.items) {
      if (item.task >= 0) {
        ++runs[static_cast<size_t>(item.task)];
        if (const int sets = sets_[static_cast<size_t>(item.task)]; sets >= 0) Ask(choices_[static_cast<size_t>(sets)]);
      }
      if (item.branch >= 0) Interpret(choices_[static_cast<size_t>(item.branch)], runs);
    }
  }
  void Interpret(const Choice& choice, std::vector<int>& runs) {
    switch (choice.kind) {
      case ConditionalKind::kIf:
        if (*choice.value != 0) {
          Interpret(choice.bodies[0], runs);
        } else if (choice.bodies.size() == 2) {
          Interpret(choice.bodies[1], runs);
        }
        break;
      case ConditionalKind::kWhile:
        while (*choice.value != 0) Interpret(choice.bodies[0], runs);
        break;
      case ConditionalKind::kSwitch:
        if (*choice.value < choice.bodies.size()) Interpret(choice.bodies[*choice.value], runs);
        break;
    }
  }

  std::vector<GraphStep> StepsOf(const Program& program) {
    std::vector<GraphStep> steps;
    for (const Item& item : program.items) {
      GraphStep& step = steps.emplace_back();
      step.after = item.after;
      if (item.task >= 0) step.work.task = std::make_unique<NumberedTask>(item.task, &fault);
      if (item.branch < 0) continue;
      const Choice& choice = choices_[static_cast<size_t>(item.branch)];
      step.branch = std::make_unique<BranchSteps>(BranchSteps{choice.kind, choice.value, {}});
      for (const Program& body : choice.bodies) step.branch->bodies.push_back(StepsOf(body));
    }
    return steps;
  }

  std::mt19937 random_;
  int tasks_ = 0;
  std::vector<std::vector<int>> before_;  // for each task, tasks of the same program that it follows
  std::vector<int> sets_;  // for each task, the choice whose next value it asks for; -1: none
  std::vector<Choice> choices_;
  Program whole_;
};

// Choices in bodies of other choices are asked in an order that only a chain would fix, but each has a script and a
// setter of its own, so the order does not matter.
TEST(GraphRunTest, RandomProgramsRunEachTaskAsOftenAsAnInterpreterDoes) {
  int ran = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Machine machine(seed);
    const std::vector<int> expected = machine.Interpret();
    ASSERT_EQ(machine.Run(), expected);
    ran += static_cast<int>(std::count_if(expected.begin(), expected.end(), [](int runs) { return runs > 1; }));
  }
  EXPECT_GT(ran, 1000) << "hardly any loop has gone round";
}

std::vector<GraphStep> LoopOf(std::shared_ptr<uint32_t> value, std::vector<GraphStep> body) {
  std::vector<GraphStep> steps(1);
  steps[0].branch = std::make_unique<BranchSteps>(BranchSteps{ConditionalKind::kWhile, std::move(value), {}});
  steps[0].branch->bodies.push_back(std::move(body));
  return steps;
}

TEST(GraphRunTest, ALoopWhoseRunHasFailedEndsAfterTheIteration) {
  RunFault fault, other;
  std::vector<GraphStep> body(1);
  body[0].work.task = std::make_unique<NumberedTask>(0, &fault);
  GraphRun run(LoopOf(std::make_shared<uint32_t>(1), std::move(body)));
  std::vector<int32_t> ready;
  EXPECT_FALSE(run.Start(ready));
  other.Fail(0, absl::InternalError("of another run"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ready.size(), 1u);
    const int32_t node = std::exchange(ready, {})[0];
    if (i == 2) fault.Fail(0, absl::InternalError("as any"));
    EXPECT_EQ(run.End(node, ready), i == 2);
  }
  EXPECT_TRUE(ready.empty());
}

// Otherwise the scheduler would look at such a loop for ever, with its lock held.
TEST(GraphRunTest, AnIterationWithoutATaskIsFollowedByOneThatDoesNothing) {
  const auto value = std::make_shared<uint32_t>(1);
  GraphRun run(LoopOf(value, {}));
  std::vector<int32_t> ready;
  EXPECT_FALSE(run.Start(ready));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ready.size(), 1u);
    const int32_t node = std::exchange(ready, {})[0];
    if (i == 0) {
      EXPECT_TRUE(run.TakeWork(node).task->Run(0).ok());
    }
    if (i == 2) *value = 0;
    EXPECT_EQ(run.End(node, ready), i == 2);
  }
  EXPECT_TRUE(ready.empty());
}

TEST(GraphRunTest, AnIterationWithATaskIsNotFollowedByAPause) {
  const auto outer = std::make_shared<uint32_t>(1), inner = std::make_shared<uint32_t>(0);
  std::vector<GraphStep> body = LoopOf(inner, {});
  body.emplace_back().work.task = std::make_unique<NumberedTask>(0, nullptr);
  GraphRun run(LoopOf(outer, std::move(body)));
  std::vector<int32_t> ready;
  EXPECT_FALSE(run.Start(ready));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ready.size(), 1u) << "the task";
    const int32_t node = std::exchange(ready, {})[0];
    if (i == 2) *outer = 0;
    EXPECT_EQ(run.End(node, ready), i == 2);
  }
}

}  // namespace
}  // namespace penstock::driver::host::graph_run_test

// User code that cannot be called, throws what says nothing, or ends its thread: from every place where it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

namespace penstock::user_code_test {
namespace {

using ::testing::HasSubstr;

enum class Kind { kNullPointer, kEmptyFunction, kNullWhat, kInt };

struct NullWhat : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

// What `use` returns for such a callable.
template <class R, class... A, class Use>
std::string With(Kind kind, const Use& use) {
  switch (kind) {
    case Kind::kNullPointer: return use(static_cast<R (*)(A...)>(nullptr));
    case Kind::kEmptyFunction: return use(std::function<R(A...)>());
    case Kind::kNullWhat: return use([](A...) -> R { throw NullWhat(); });
    case Kind::kInt: return use([](A...) -> R { throw 7; });
  }
  return "";
}

class UserCode {
 public:
  UserCode() : graph("g"), x(graph.InOut<int32_t>("x", 4)) {
    const auto log = [this](LogLevel, std::string_view text) {
      std::lock_guard lock(mu_);
      logged_ += text;
    };
    runtime.emplace(*Runtime::Create({.devices = "host:1", .workers = 1, .host_device_threads = 1, .log = log}));
  }

  Bindings Bound(const Executable& executable) { return executable.bindings().Set(x, memory); }
  std::string RunIt() {
    auto executable = runtime->Compile(graph);
    if (!executable.ok()) return executable.status().ToString();
    return executable->Launch(Bound(*executable))->Wait().ToString();
  }
  // All that was logged until the end of the runtime.
  std::string Logged() {
    EXPECT_EQ(runtime->Shutdown(), absl::OkStatus());
    std::lock_guard lock(mu_);
    return logged_;
  }

  std::optional<Runtime> runtime;
  Graph graph;
  BufferHandle<int32_t> x;
  std::vector<int32_t> memory = std::vector<int32_t>(4, 10);

 private:
  std::mutex mu_;
  std::string logged_;
};

std::string Pipelined(UserCode& user, Stages<int> stages, const std::function<std::optional<int>()>& source,
                      const std::function<void(Item<int>&)>& sink) {
  user.graph.Fill("fill", user.x, 1);
  Executable executable = *user.runtime->Compile(user.graph);
  stages.Run("run", executable, [&](Item<int>& item) { item.Set(user.x, user.memory); });
  auto pipeline = Pipeline<int>::Create(std::move(stages), {.on_error = kFail});
  return pipeline.ok() ? pipeline->Run(source, sink).ToString() : pipeline.status().ToString();
}

std::function<std::optional<int>()> OneItem() {
  return [n = 0]() mutable { return n++ == 0 ? std::optional<int>(1) : std::nullopt; };
}

struct Place {
  const char* name;
  const char* subject;  // whose the failure is said to be
  std::string (*use)(Kind);
};

const Place kPlaces[] = {
    {"Host", "graph 'g' node 'calls' (user_code_test.cc:",
     [](Kind kind) {
       return With<void, std::span<int32_t>>(kind, [](auto f) {
         UserCode user;
         user.graph.Host("calls", f, ReadWrite(user.x));
         return user.RunIt();
       });
     }},
    {"ParallelFor", "graph 'g' node 'calls' (user_code_test.cc:",
     [](Kind kind) {
       using Function = void (*)(int64_t, View<int32_t>);
       Function f = nullptr;
       if (kind == Kind::kNullWhat) f = [](int64_t, View<int32_t>) { throw NullWhat(); };
       if (kind == Kind::kInt) f = [](int64_t, View<int32_t>) { throw 7; };
       UserCode user;
       user.graph.ParallelFor("calls", 4, f, ReadWrite(user.x));
       return user.RunIt();
     }},
    {"Twin", "graph 'g' node 'calls' (user_code_test.cc:",
     [](Kind kind) {
       return With<void, int32_t*>(kind, [](auto f) {
         UserCode user;
         user.graph.Launch("calls", [](LaunchContext&, int32_t*) {}, ReadWrite(user.x)).HostFallback(f);
         return user.RunIt();
       });
     }},
    {"OnDone", "graph 'g': a run's OnDone callback",
     [](Kind kind) {
       return With<void, const absl::Status&>(kind, [](auto f) {
         UserCode user;
         user.graph.Fill("fill", user.x, 1);
         Executable executable = *user.runtime->Compile(user.graph);
         Run run = *executable.Launch(user.Bound(executable));
         EXPECT_EQ(run.Wait(), absl::OkStatus());
         run.OnDone(f);
         return user.Logged();
       });
     }},
    {"Declaration", "GraphCache: the function that declares",
     [](Kind kind) {
       return With<void, Graph&>(kind, [](auto f) {
         UserCode user;
         GraphCache cache(*user.runtime);
         return cache.Launch(f).status().ToString();
       });
     }},
    {"Stage", "pipeline stage 'calls' (",
     [](Kind kind) {
       return With<void, int&>(kind, [](auto f) {
         UserCode user;
         Stages<int> stages;
         stages.Host("calls", f);
         return Pipelined(user, std::move(stages), OneItem(), [](Item<int>&) {});
       });
     }},
    {"Set", "pipeline stage 'calls' (",
     [](Kind kind) {
       return With<void, Item<int>&>(kind, [](auto f) {
         UserCode user;
         Graph other("other");
         auto y = other.InOut<int32_t>("y", 4);
         other.Fill("fill", y, 1);
         Stages<int> stages;
         stages.Run("calls", *user.runtime->Compile(other), f);
         return Pipelined(user, std::move(stages), OneItem(), [](Item<int>&) {});
       });
     }},
    {"Source", "pipeline: ",
     [](Kind kind) {
       return With<std::optional<int>>(kind, [](auto f) {
         UserCode user;
         return Pipelined(user, {}, f, [](Item<int>&) {});
       });
     }},
    {"Sink", "pipeline: ",
     [](Kind kind) {
       return With<void, Item<int>&>(kind, [](auto f) {
         UserCode user;
         return Pipelined(user, {}, OneItem(), f);
       });
     }},
};

class UserCodePlaces : public ::testing::TestWithParam<Place> {};

TEST_P(UserCodePlaces, ThatIsNullOrThrowsIsToldInWords) {
  const auto [name, subject, use] = GetParam();
  for (const Kind kind : {Kind::kNullPointer, Kind::kEmptyFunction, Kind::kNullWhat, Kind::kInt}) {
    const std::string told = use(kind);
    EXPECT_THAT(told, HasSubstr(subject));
    EXPECT_THAT(told, HasSubstr(kind == Kind::kNullWhat ? " threw an exception whose what() is null; catch it there"
                                : kind == Kind::kInt    ? " threw something that is no std::exception; catch it there"
                                                        : " is null; give one that can be called"));
  }
}

std::string NameOf(const ::testing::TestParamInfo<Place>& place) { return place.param.name; }
INSTANTIATE_TEST_SUITE_P(All, UserCodePlaces, ::testing::ValuesIn(kPlaces), NameOf);

TEST(UserCodeTest, ANullKernelIsAMistake) {
  UserCode user;
  void (*kernel)(int32_t*) = nullptr;
  user.graph.Kernel("calls", kernel, Threads(4), ReadWrite(user.x)).HostFallback([](int32_t*) {});
  EXPECT_THAT(user.RunIt(), HasSubstr("the kernel is null; give one that can be called"));
}

// What only looks as if it could be empty: a lambda converts to bool by way of a function pointer.
TEST(UserCodeTest, WhatConvertsToBoolUnaskedIsNotNull) {
  struct Number {
    operator int() const { return 0; }  // NOLINT(google-explicit-constructor)
    void operator()(std::span<int32_t> x) const { x[0] += 1; }
  };
  UserCode user;
  user.graph.Host("lambda", [](std::span<int32_t> x) { x[0] += 1; }, ReadWrite(user.x));
  user.graph.Host("number", Number(), ReadWrite(user.x));
  EXPECT_EQ(user.RunIt(), "OK");
  EXPECT_EQ(user.memory[0], 12);
}

// With one worker and one thread of the device, in the place of which others go on.
TEST(UserCodeTest, ANodeThatEndsItsThreadFailsAndAnotherThreadGoesOn) {
  UserCode user;
  bool on_device = false, on_host = false;
  user.graph.Launch(
                "device", [](LaunchContext&, int32_t*) {}, ReadWrite(user.x))
      .HostFallback([&](int32_t* x) {
        if (on_device) pthread_exit(nullptr);
        x[0] += 1;
      });
  user.graph.Host(
      "host",
      [&](std::span<int32_t> x) {
        if (on_host) pthread_exit(nullptr);
        x[0] += 1;
      },
      ReadWrite(user.x));
  Executable executable = *user.runtime->Compile(user.graph);
  const auto run = [&] { return executable.Launch(user.Bound(executable))->Wait().ToString(); };
  for (const bool device : {true, false, true, false}) {
    (device ? on_device : on_host) = true;
    const std::string told = run();
    EXPECT_THAT(told, HasSubstr(device ? "node 'device'" : "node 'host'"));
    EXPECT_THAT(told, HasSubstr("the callable ended the thread it was called on"));
    on_device = on_host = false;
    user.memory[0] = 10;
    EXPECT_EQ(run(), "OK");
    EXPECT_EQ(user.memory[0], 12);
  }
}

TEST(UserCodeTest, AStageThatEndsItsThreadFailsItsItemAndAnotherThreadGoesOn) {
  UserCode user;
  user.graph.Fill("fill", user.x, 1);
  Stages<int> stages;
  stages.Host("stage", [](int& value) {
    if (value < 2) pthread_exit(nullptr);
  });
  stages.Run("run", *user.runtime->Compile(user.graph), [&](Item<int>& item) { item.Set(user.x, user.memory); });
  auto pipeline = Pipeline<int>::Create(std::move(stages));
  ASSERT_TRUE(pipeline.ok());
  std::vector<std::string> ends;
  int next = 0;
  const auto source = [&]() -> std::optional<int> { return next < 3 ? std::optional<int>(next++) : std::nullopt; };
  EXPECT_EQ(pipeline->Run(source, [&](Item<int>& item) { ends.push_back(item.status().ToString()); }),
            absl::OkStatus());
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_THAT(ends[0], HasSubstr("its function ended the thread it was called on"));
  EXPECT_THAT(ends[1], HasSubstr("its function ended the thread it was called on"));
  EXPECT_EQ(ends[2], "OK");
}

}  // namespace
}  // namespace penstock::user_code_test

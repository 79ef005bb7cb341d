// User code that throws: from every place where the library calls it. The process goes on, whoever waits is told in
// whole words, and the next run is right. Each row in a process of its own, which std::terminate would end.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "tests/process/child.h"
#include "tests/process/devices.h"

namespace penstock::test_support::throw_test {
namespace {

// Throws where the row says so, in the first run only.
struct Bomb {
  std::string place;
  std::atomic<bool> armed{true};

  void At(const char* here) {
    if (place.rfind(here, 0) != 0 || !armed.exchange(false)) return;
    if (place.find("an int") != std::string::npos) throw 7;
    throw std::runtime_error("boom");
  }
};

struct AddOne {
  Bomb* bomb;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const {
#if !defined(__CUDA_ARCH__)
    bomb->At("functor");
#endif
    x[i] += 1;
  }
};

void Print(const std::string& what) { std::printf("%s\n", what.c_str()); }

int RunOnce(Executable& executable, BufferHandle<int32_t> x, Bomb& bomb) {
  std::vector<int32_t> memory(4, 10);
  Bindings io = executable.bindings();
  const absl::StatusOr<penstock::Run> run = executable.Launch(io.Set(x, memory));
  if (!run.ok()) return Print(run.status().ToString()), 1;
  run->OnDone([&](const absl::Status&) { bomb.At("callback"); });
  const absl::Status status = run->Wait();
  Print(status.ok() ? "x is " + std::to_string(memory[0]) : status.ToString());
  return 0;
}

int RunItems(Executable& executable, BufferHandle<int32_t> x, Bomb& bomb) {
  struct Numbers {
    std::vector<int32_t> x = std::vector<int32_t>(4, 10);
  };
  int pulled = 0;
  const auto source = [&]() -> std::optional<Numbers> {
    if (pulled == 2) return std::nullopt;
    ++pulled;
    bomb.At("source");
    return Numbers();
  };
  const auto sink = [&](Item<Numbers>& item) {
    bomb.At("sink");
    Print(item.status().ok() ? "item is " + std::to_string(item->x[0]) : "item: " + item.status().ToString());
  };
  Stages<Numbers> stages;
  stages.Host("before", [&](Numbers&) { bomb.At("before"); });
  stages.Run("add", executable, [&](Item<Numbers>& item) {
    bomb.At("set");
    item.Set(x, item->x);
  });
  stages.Host("after", [&](Numbers&) { bomb.At("after"); });
  auto pipeline = Pipeline<Numbers>::Create(std::move(stages));
  if (!pipeline.ok()) return Print(pipeline.status().ToString()), 1;
  Print("pipeline: " + pipeline->Run(source, sink).ToString());
  return 0;
}

// "host:2/functor"
const Scenario kThrows("throws", [](const std::string& row) -> int {
  const size_t slash = row.find('/');
  Bomb bomb{row.substr(slash + 1)};
  const auto log = [&](LogLevel level, std::string_view text) {
    if (level < LogLevel::kError) return;
    Print("log: " + std::string(text));
  };
  {
    absl::StatusOr<Runtime> runtime =
        Runtime::Create({.devices = row.substr(0, slash), .workers = 1, .host_device_threads = 1, .log = log});
    if (!runtime.ok()) return Print(runtime.status().ToString()), 77;
    Graph graph("throwing");
    auto x = graph.InOut<int32_t>("x", 4);
    graph.ParallelFor("add", 4, AddOne{&bomb}, ReadWrite(x));
    graph.Launch(
             "launch", [&](LaunchContext&, int32_t*) { bomb.At("launch"); }, ReadWrite(x))
        .HostFallback([&](int32_t*) { bomb.At("launch"); });
    graph.Host("host node", [&](std::span<int32_t>) { bomb.At("host node"); }, ReadWrite(x));
    // In graph mode a Launch is called by Compile, which makes what throws then a node of streams.
    Executable executable = *runtime->Compile(graph, {.slots = 1, .mode = Mode::kStream});
    for (const char* stage : {"source", "before", "set", "after", "sink"}) {
      if (bomb.place == stage) return RunItems(executable, x, bomb);
    }
    for (int i = 0; i < 2; ++i) {
      if (const int code = RunOnce(executable, x, bomb)) return code;
    }
    if (const absl::Status status = runtime->Shutdown(); !status.ok()) Print(status.ToString());
  }
  return 3;
});

class Throws : public ::testing::TestWithParam<std::string> {};

// One form for where a node threw, whatever the file's path and line are.
std::string WithoutLines(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' && text.find("throw_test.cc:", i) < text.find(')', i)) {
      i = text.find(')', i);
      out += "(line)";
    } else {
      out += text[i];
    }
  }
  return out;
}

const std::map<std::string, std::string>& Expected() {
  static const std::string kRight = "x is 11\n";
  static const auto node = [](const char* name, const char* where, const char* what) {
    return std::string("INTERNAL: graph 'throwing' node '") + name + "' (line) on " + where + ": the callable threw" +
           what + "; catch it there\n" + kRight;
  };
  static const auto item = [](const char* stage) {
    return std::string("item: INTERNAL: pipeline stage '") + stage +
           "' (line): its function threw: boom; catch it there\nitem is "
           "11\npipeline: OK\n";
  };
  static const std::map<std::string, std::string> kExpected = {
      {"functor", node("add", "host:0", ": boom")},
      {"functor, an int", node("add", "host:0", " something that is no std::exception")},
      {"launch", node("launch", "DEVICE", ": boom")},
      {"launch, an int", node("launch", "DEVICE", " something that is no std::exception")},
      {"host node", node("host node", "host", ": boom")},
      {"host node, an int", node("host node", "host", " something that is no std::exception")},
      {"callback", kRight + kRight + "log: graph 'throwing': a run's OnDone callback threw: boom; catch it there\n"},
      {"callback, an int", kRight + kRight +
                               "log: graph 'throwing': a run's OnDone callback threw something that is no "
                               "std::exception; catch it there\n"},
      {"source", "pipeline: INTERNAL: pipeline: source threw: boom; catch it there\n"},
      {"before", item("before")},
      {"set", item("add")},
      {"after", item("after")},
      {"sink", "pipeline: INTERNAL: pipeline: sink threw: boom; catch it there\n"},
  };
  return kExpected;
}

TEST_P(Throws, TheWaiterIsToldAndTheProcessGoesOn) {
  const std::string& row = GetParam();
  const std::string place = row.substr(row.find('/') + 1);
  const ChildResult child = RunInChild(kThrows, row);
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  const bool items = Expected().at(place).find("pipeline") != std::string::npos;
  EXPECT_EQ(child.ended, items ? "exit 0" : "exit 3") << child;
  std::string expected = Expected().at(place);
  if (const size_t at = expected.find("DEVICE"); at != std::string::npos) {
    expected.replace(at, 6, row.rfind("cuda", 0) == 0 ? "cuda:0" : "host:0");
  }
  std::string found = WithoutLines(child.output);
  if (place.rfind("callback", 0) == 0) {  // which is called beside the second run
    const size_t log = found.find("log: ");
    ASSERT_NE(log, std::string::npos) << child;
    const size_t end = found.find('\n', log) + 1;
    found = found.substr(0, log) + found.substr(end) + found.substr(log, end - log);
  }
  EXPECT_EQ(found, expected);
}

std::vector<std::string> CsrRows(const std::string& devices) {
  std::vector<std::string> rows;
  for (const auto& [place, expected] : Expected()) {
    if (devices == "cuda" && place.rfind("functor", 0) == 0) continue;  // it runs on the GPU
    rows.push_back(devices + "/" + place);
  }
  return rows;
}
std::string NameOfRow(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(info.param.find('/') + 1);
  std::erase(name, ',');
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(Host, Throws, ::testing::ValuesIn(CsrRows("host:2")), NameOfRow);
INSTANTIATE_TEST_SUITE_P(Cuda, Throws, ::testing::ValuesIn(CsrRows("cuda")), NameOfRow);

}  // namespace
}  // namespace penstock::test_support::throw_test

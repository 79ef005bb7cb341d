// Device memory that launches bind, on every driver: executables chained without the host, what a run waits for and
// fails with, States behind it, buffers moved into runs, and every mistake.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/device_words.h"
#include "tests/support/kernels.h"
#include "tests/support/status.h"

#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::device_memory_test {
namespace {

using std::chrono::seconds;

constexpr int64_t kN = 3001;

// middle = x + 1, after a host node that waits for `open` and may fail.
struct First {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::atomic<bool> fails{false};
  Graph graph{"first"};
  BufferHandle<int32_t> x = graph.Input<int32_t>("x", kN);
  BufferHandle<int32_t> middle = graph.Output<int32_t>("middle", kN, kDevice);
  explicit First(bool held = false) {
    auto t = graph.Buffer<int32_t>("t", kN);
    graph.Host(
        "gate",
        [this, held](std::span<const int32_t> from, std::span<int32_t> to) {
          if (held) opened.wait_for(seconds(20));
          std::copy(from.begin(), from.end(), to.begin());
          return fails ? absl::InternalError("planned") : absl::OkStatus();
        },
        Read(x), Write(t));
    graph.ParallelFor("plus one", kN, PlusOne{}, Read(t), Write(middle));
  }
};
// y = 2 * middle.
struct Second {
  Graph graph{"second"};
  BufferHandle<int32_t> middle = graph.Input<int32_t>("middle", kN, kDevice);
  BufferHandle<int32_t> y = graph.Output<int32_t>("y", kN);
  Second() { graph.ParallelFor("twice", kN, Twice{}, Read(middle), Write(y)); }
};

class DeviceMemory : public GraphConformance {
 protected:
  DeviceBuffer<int32_t> Made(int64_t n = kN, int device = 0) {
    absl::StatusOr<DeviceBuffer<int32_t>> made = runtime_->MakeDeviceBuffer<int32_t>(n, device);
    EXPECT_OK(made.status());
    return made.ok() ? *made : DeviceBuffer<int32_t>();
  }
  Executable Compiled(const Graph& graph, CompileOptions options = {}) {
    absl::StatusOr<Executable> made = runtime_->Compile(graph, std::move(options));
    EXPECT_OK(made.status());
    return made.ok() ? *made : Executable();
  }
  void Fill(const DeviceBuffer<int32_t>& memory) {
    Graph g("fill");
    auto x = g.Output<int32_t>("x", kN, kDevice);
    g.Fill("five", x, 5);
    EXPECT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, memory); }));
  }
  static std::vector<int32_t> Doubled(const std::vector<int32_t>& x) {
    std::vector<int32_t> y;
    for (const int32_t v : x) y.push_back(2 * (v + 1));
    return y;
  }
};

TEST_P(DeviceMemory, CarriesDataFromOneExecutableToTheNext) {
  First first;
  Second second;
  Executable a = Compiled(first.graph), b = Compiled(second.graph);
  EXPECT_EQ(a.PlanText().find("download middle"), std::string::npos) << "it stays where it is";
  EXPECT_EQ(b.PlanText().find("upload middle"), std::string::npos);
  Bindings ia = a.bindings(), ib = b.bindings();
  const DeviceBuffer<int32_t> memory[] = {Made(), Made()};
  std::vector<penstock::Run> readers(2);
  std::vector<std::vector<int32_t>> given, results;
  for (int i = 0; i < 8; ++i) {
    given.push_back(Random(kN));
    results.push_back(Poisoned(kN));
  }
  std::vector<penstock::Run> runs;
  for (size_t i = 0; i < given.size(); ++i) {
    ia.Set(first.x, given[i]).Set(first.middle, memory[i % 2]);
    if (i >= 2) ia.After(first.middle, readers[i % 2]);  // who reads what this one writes over
    absl::StatusOr<penstock::Run> run = a.Launch(ia, seconds(60));
    ASSERT_OK(run.status());
    run = b.Launch(ib.Set(second.middle, memory[i % 2]).After(second.middle, *run).Set(second.y, results[i]),
                   seconds(60));
    ASSERT_OK(run.status());
    readers[i % 2] = *run;
    runs.push_back(*run);
  }
  for (const penstock::Run& run : runs) ASSERT_OK(run.Wait());
  for (size_t i = 0; i < given.size(); ++i) ASSERT_EQ(results[i], Doubled(given[i])) << i;
}

// The second launch returns while nobody can have made what it is to read.
TEST_P(DeviceMemory, IsReadOnlyWhenTheRunBeforeHasWrittenIt) {
  First first(/*held=*/true);
  Second second;
  Executable a = Compiled(first.graph), b = Compiled(second.graph);
  Bindings ia = a.bindings(), ib = b.bindings();
  const DeviceBuffer<int32_t> memory = Made();
  const std::vector<int32_t> x = Random(kN);
  std::vector<int32_t> y = Poisoned(kN);
  absl::StatusOr<penstock::Run> before = a.Launch(ia.Set(first.x, x).Set(first.middle, memory));
  ASSERT_OK(before.status());
  absl::StatusOr<penstock::Run> run =
      b.Launch(ib.Set(second.middle, memory).After(second.middle, *before).Set(second.y, y));
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait(std::chrono::milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(y, Poisoned(kN));
  first.open.set_value();
  ASSERT_OK(run->Wait(seconds(20)));
  EXPECT_EQ(y, Doubled(x));
  EXPECT_TRUE(before->done());
}

TEST_P(DeviceMemory, OfAFailedRunFailsThoseAfterIt) {
  First first(/*held=*/true);
  first.fails = true;
  Second second;
  Executable a = Compiled(first.graph), b = Compiled(second.graph);
  Bindings ia = a.bindings(), ib = b.bindings();
  const DeviceBuffer<int32_t> memory = Made();
  const std::vector<int32_t> x = Random(kN);
  std::vector<int32_t> y = Poisoned(kN), z = y;
  absl::StatusOr<penstock::Run> before = a.Launch(ia.Set(first.x, x).Set(first.middle, memory));
  ASSERT_OK(before.status());
  absl::StatusOr<penstock::Run> run =
      b.Launch(ib.Set(second.middle, memory).After(second.middle, *before).Set(second.y, y));
  ASSERT_OK(run.status());
  absl::StatusOr<penstock::Run> behind =
      b.Launch(ib.Set(second.middle, memory).After(second.middle, *run).Set(second.y, z));
  ASSERT_OK(behind.status());
  first.open.set_value();
  const absl::Status status = run->Wait(seconds(20));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(Text(status).find("graph 'second': it depends on a run that failed: graph 'first' node 'gate'"),
            std::string::npos)
      << status;
  EXPECT_EQ(behind->Wait(seconds(20)).code(), absl::StatusCode::kFailedPrecondition);
  // And one that is launched when all that is over.
  run = b.Launch(ib.Set(second.middle, memory).After(second.middle, *before).Set(second.y, y));
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait(seconds(20)).code(), absl::StatusCode::kFailedPrecondition);
}

// The host node behind the last work on the device fails when the run behind has done all of its own.
TEST_P(DeviceMemory, OfARunThatFailsLastFailsThoseAfterItAndSparesTheirStates) {
  std::promise<void> open;
  const std::shared_future<void> opened = open.get_future().share();
  Graph first("first");
  auto middle = first.Output<int32_t>("middle", kN, kDevice);
  first.Fill("three", middle, 3);
  auto end = first.Output<int32_t>("end", 1);
  first.Host(
      "late",
      [&](std::span<int32_t> v) {
        opened.wait_for(seconds(20));
        v[0] = 1;
        return absl::InternalError("planned");
      },
      Write(end));
  absl::StatusOr<State<int32_t>> sum = runtime_->MakeState<int32_t>("sum", kN);
  ASSERT_OK(sum.status());
  Graph second("second");
  auto in = second.Input<int32_t>("in", kN, kDevice);
  second.ParallelFor("add", kN, AddTo{}, Read(in), ReadWrite(*sum));
  Executable a = Compiled(first), b = Compiled(second);
  const DeviceBuffer<int32_t> memory = Made();
  int32_t word = 0;
  Bindings ia = a.bindings(), ib = b.bindings();
  absl::StatusOr<penstock::Run> before = a.Launch(ia.Set(middle, memory).Set(end, std::span(&word, 1)));
  ASSERT_OK(before.status());
  absl::StatusOr<penstock::Run> run = b.Launch(ib.Set(in, memory).After(in, *before));
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait(std::chrono::milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
  open.set_value();
  EXPECT_EQ(run->Wait(seconds(20)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(sum->status());
  std::vector<int32_t> contents = Poisoned(kN);
  ASSERT_OK(sum->Read(contents));
  EXPECT_EQ(contents, std::vector<int32_t>(kN)) << "nothing of the failed run has reached it";
}

TEST_P(DeviceMemory, IsUsedInPlaceByKernelsCopiesAndTheHost) {
  Graph g("all");
  auto x = g.InOut<int32_t>("x", kN, kDevice);
  auto part = g.Output<int32_t>("part", kN, kDevice);
  auto out = g.Output<int32_t>("out", kN);
  g.ParallelFor("more", kN, AddTo{}, Read(x), ReadWrite(x));  // x = 2 x
  g.Host(
      "minus one",
      [](std::span<int32_t> v) {
        for (int32_t& e : v) --e;
      },
      ReadWrite(x));
  g.Copy("a half", Read(x, Slice(0, kN / 2)), Write(part, Slice(100, kN / 2)));
  g.Copy("out", x, out);
  Executable exec = Compiled(g);
  Graph fill("fill");  // and one to bring data to the device
  auto from = fill.Input<int32_t>("from", kN), from_part = fill.Input<int32_t>("from part", kN);
  auto to = fill.Output<int32_t>("to", kN, kDevice), to_part = fill.Output<int32_t>("to part", kN, kDevice);
  fill.Copy("in", from, to);
  fill.Copy("in part", from_part, to_part);
  Executable bring = Compiled(fill);
  Graph fetch("fetch");
  auto a = fetch.Input<int32_t>("a", kN, kDevice), b = fetch.Input<int32_t>("b", kN, kDevice);
  auto back = fetch.Output<int32_t>("back", kN), back_part = fetch.Output<int32_t>("back part", kN);
  fetch.Copy("back", a, back);
  fetch.Copy("back part", b, back_part);
  Executable take = Compiled(fetch);

  const DeviceBuffer<int32_t> dx = Made(), dpart = Made();
  const std::vector<int32_t> hx = Random(kN), hpart = Random(kN);
  std::vector<int32_t> got = Poisoned(kN), got_x = got, got_part = got;
  Bindings i1 = bring.bindings(), i2 = exec.bindings(), i3 = take.bindings();
  absl::StatusOr<penstock::Run> one =
      bring.Launch(i1.Set(from, hx).Set(from_part, hpart).Set(to, dx).Set(to_part, dpart));
  ASSERT_OK(one.status());
  absl::StatusOr<penstock::Run> two =
      exec.Launch(i2.Set(x, dx).After(x, *one).Set(part, dpart).After(part, *one).Set(out, got));
  ASSERT_OK(two.status());
  absl::StatusOr<penstock::Run> three =
      take.Launch(i3.Set(a, dx).After(a, *two).Set(b, dpart).After(b, *two).Set(back, got_x).Set(back_part, got_part));
  ASSERT_OK(three.status());
  ASSERT_OK(three->Wait(seconds(60)));
  std::vector<int32_t> wanted, wanted_part = hpart;
  for (const int32_t v : hx) wanted.push_back(2 * v - 1);
  std::copy_n(wanted.begin(), kN / 2, wanted_part.begin() + 100);
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(got_x, wanted);
  EXPECT_EQ(got_part, wanted_part) << "what is not written keeps its contents";
}

TEST_P(DeviceMemory, IsThatOfTheDeviceOfTheFirstNodeThatUsesIt) {
  if (runtime_->devices().size() < 2) GTEST_SKIP() << "needs two devices";
  Graph g("two");
  auto x = g.Input<int32_t>("x", kN, kDevice);
  auto y = g.Output<int32_t>("y", kN, kDevice);
  auto z = g.Output<int32_t>("z", kN);
  g.ParallelFor("there", kN, PlusOne{}, Read(x), Write(y)).On(1);
  g.ParallelFor("here", kN, Twice{}, Read(y), Write(z)).On(0);
  Executable exec = Compiled(g);
  Graph fill("fill");
  auto to = fill.Output<int32_t>("to", kN, kDevice);
  fill.Fill("five", to, 5).On(1);
  Executable bring = Compiled(fill);
  const DeviceBuffer<int32_t> dx = Made(kN, 1), dy = Made(kN, 1), wrong = Made(kN, 0);
  std::vector<int32_t> hz = Poisoned(kN);
  Bindings io = exec.bindings(), ib = bring.bindings();
  absl::StatusOr<penstock::Run> run = bring.Launch(ib.Set(to, dx));
  ASSERT_OK(run.status());
  run = exec.Launch(io.Set(x, dx).After(x, *run).Set(y, dy).Set(z, hz));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait(seconds(60)));
  EXPECT_EQ(hz, std::vector<int32_t>(kN, 12));
  const absl::Status refused = exec.Launch(io.Set(x, wrong)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Text(refused).find("buffer 'x'"), std::string::npos) << refused;
  EXPECT_NE(Text(refused).find("bound to memory that is not of " + runtime_->devices()[1].name +
                               ", where the first node that uses it runs; bind memory of that device"),
            std::string::npos)
      << refused;
}

#if defined(__CUDACC__)
__global__ void Hold(const int32_t* word) {
  while (LoadWord(word) == 0) {
  }
}

// The application's own memory, stream and event, which it records again behind the launch.
TEST_P(DeviceMemory, OfTheApplicationIsReadAfterItsEventAsItStoodAtLaunch) {
  if (!on_cuda()) GTEST_SKIP() << "needs a CUDA device";
  Second second;
  Executable b = Compiled(second.graph);
  Bindings io = b.bindings();
  auto words = runtime_->MakeHostBuffer<int32_t>(2);
  auto given = runtime_->MakeHostBuffer<int32_t>(kN), y = runtime_->MakeHostBuffer<int32_t>(kN);
  ASSERT_OK(words.status());
  ASSERT_OK(given.status());
  ASSERT_OK(y.status());
  (*words)[0] = (*words)[1] = 0;
  const std::vector<int32_t> data = Random(kN), poison = Poisoned(kN);
  std::copy(data.begin(), data.end(), given->begin());
  std::copy(poison.begin(), poison.end(), y->begin());
  constexpr size_t kBytes = kN * sizeof(int32_t);
  int32_t* memory = nullptr;
  cudaStream_t stream;
  cudaEvent_t event;
  ASSERT_OK(ToStatus(cudaSetDevice(0)));
  ASSERT_OK(ToStatus(cudaMalloc(&memory, kBytes)));
  ASSERT_OK(ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  ASSERT_OK(ToStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)));
  ASSERT_OK(ToStatus(cudaMemsetAsync(memory, 0, kBytes, stream)));
  Hold<<<1, 1, 0, stream>>>(words->data());
  ASSERT_OK(ToStatus(cudaGetLastError()));
  ASSERT_OK(ToStatus(cudaMemcpyAsync(memory, given->data(), kBytes, cudaMemcpyHostToDevice, stream)));
  ASSERT_OK(ToStatus(cudaEventRecord(event, stream)));
  io.Set(second.middle, std::span(memory, size_t{kN})).After(second.middle, Native(event)).Set(second.y, *y);
  absl::StatusOr<penstock::Run> run = b.Launch(io, seconds(60));
  EXPECT_OK(run.status());
  Hold<<<1, 1, 0, stream>>>(words->data() + 1);
  EXPECT_OK(ToStatus(cudaEventRecord(event, stream)));
  if (run.ok()) EXPECT_EQ(run->Wait(std::chrono::milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
  StoreWord(words->data(), 1);
  if (run.ok()) EXPECT_OK(run->Wait(seconds(20)));
  StoreWord(words->data() + 1, 1);
  EXPECT_OK(ToStatus(cudaStreamSynchronize(stream)));
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ((*y)[static_cast<int64_t>(i)], 2 * data[i]) << i;
  EXPECT_OK(ToStatus(cudaEventDestroy(event)));
  EXPECT_OK(ToStatus(cudaStreamDestroy(stream)));
  EXPECT_OK(ToStatus(cudaFree(memory)));
}
#endif

TEST_P(DeviceMemory, IsCheckedAgainstTheHostsResults) {
  Graph g("checked");
  auto x = g.InOut<int32_t>("x", kN, kDevice);
  g.ParallelFor("more", kN, AddOne{}, ReadWrite(x));
  auto y = g.Output<int32_t>("y", kN, kDevice);
  g.ParallelFor("twice", kN, Twice{}, Read(x), Write(y));
  Second second;
  const DeviceBuffer<int32_t> dx = Made(), dy = Made();
  Fill(dx);
  Executable exec = Compiled(g, {.check_against_host = true}), b = Compiled(second.graph);
  Bindings io = exec.bindings(), ib = b.bindings();
  std::vector<int32_t> result = Poisoned(kN);
  absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(x, dx).Set(y, dy));
  ASSERT_OK(run.status());
  run = b.Launch(ib.Set(second.middle, dy).After(second.middle, *run).Set(second.y, result));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait(seconds(60)));
  EXPECT_EQ(result, std::vector<int32_t>(kN, 24));
}

TEST_P(DeviceMemory, IsKeptAliveByTheRunsThatUseIt) {
  First first(/*held=*/true);
  Executable a = Compiled(first.graph);
  const std::vector<int32_t> x = Random(kN);
  absl::StatusOr<penstock::Run> run = absl::UnknownError("");
  std::weak_ptr<void> block;
  {
    Bindings ia = a.bindings();
    const DeviceBuffer<int32_t> memory = Made();
    block = memory.block();
    run = a.Launch(ia.Set(first.x, x).Set(first.middle, memory));
    ASSERT_OK(run.status());
  }
  EXPECT_FALSE(block.expired());
  first.open.set_value();
  ASSERT_OK(run->Wait(seconds(20)));
  for (int i = 0; i < 2000 && !block.expired(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(block.expired());
}

TEST_P(DeviceMemory, RefusesWhatIsNotThere) {
  Second second;
  Executable b = Compiled(second.graph);
  std::vector<int32_t> y = Poisoned(kN), host = Random(kN);
  const DeviceBuffer<int32_t> memory = Made();
  Fill(memory);
  Bindings io = b.bindings();
  io.Set(second.y, y);
  const auto refusal = [&](Bindings& with) { return Text(b.Launch(with).status()); };
  EXPECT_NE(refusal(io.Set(second.middle, host)).find("bound to memory that is not all of "), std::string::npos)
      << refusal(io);
  auto pinned = runtime_->MakeHostBuffer<int32_t>(kN);
  ASSERT_OK(pinned.status());
  EXPECT_NE(refusal(io.Set(second.middle, *pinned)).find("bound to memory that is not all of "), std::string::npos);
  EXPECT_NE(refusal(io.Set(second.middle, std::span(memory.data(), size_t{7}))).find("bound to 7 elements"),
            std::string::npos);
  EXPECT_NE(refusal(io.Set(second.middle, memory).Set(second.y, std::span(memory.data(), size_t{kN})))
                .find("bound to device memory, but declared for host memory; bind host memory, or declare it kDevice"),
            std::string::npos)
      << refusal(io);
  // After.
  io.Set(second.y, y);
  EXPECT_NE(refusal(io.Set(second.middle, memory).After(second.middle, penstock::Run())).find("default-constructed"),
            std::string::npos);
  EXPECT_NE(refusal(io.Set(second.middle, memory).After(second.middle, NativeEvent{})).find("null event"),
            std::string::npos);
  absl::StatusOr<penstock::Run> run = b.Launch(io.Set(second.middle, memory));
  ASSERT_OK(run.status());
  EXPECT_NE(refusal(io.After(second.y, *run)).find("After orders the use of device memory"), std::string::npos);
  io.Set(second.y, y);
  Bindings fresh = b.bindings();
  EXPECT_NE(refusal(fresh.Set(second.y, y).After(second.middle, *run)).find("After before Set"), std::string::npos);
  if (!on_cuda()) {
    int word = 0;
    const std::string text = refusal(io.Set(second.middle, memory).After(second.middle, NativeEvent{&word}));
    EXPECT_NE(text.find("a host device knows no events but its own"), std::string::npos) << text;
  }
  ASSERT_OK(run->Wait());
  {
    absl::StatusOr<Runtime> other = Runtime::Create({.devices = GetParam().devices});
    ASSERT_OK(other.status());
    Second theirs;
    absl::StatusOr<Executable> exec = other->Compile(theirs.graph);
    ASSERT_OK(exec.status());
    auto own = other->MakeDeviceBuffer<int32_t>(kN);
    ASSERT_OK(own.status());
    std::vector<int32_t> z = Poisoned(kN);
    Bindings it = exec->bindings();
    absl::StatusOr<penstock::Run> launch = exec->Launch(it.Set(theirs.middle, *own).Set(theirs.y, z));
    ASSERT_OK(launch.status());
    EXPECT_NE(refusal(io.Set(second.middle, memory).After(second.middle, *launch)).find("of another runtime"),
              std::string::npos);
    ASSERT_OK(launch->Wait());
  }
  // It is as good as before.
  run = b.Launch(io.Set(second.middle, memory));
  ASSERT_OK(run.status());
  EXPECT_OK(run->Wait());
  EXPECT_NE(Text(runtime_->MakeDeviceBuffer<int32_t>(-1).status()).find("negative or overflows"), std::string::npos);
  EXPECT_NE(Text(runtime_->MakeDeviceBuffer<int32_t>(INT64_MAX).status()).find("negative or overflows"),
            std::string::npos);
  EXPECT_NE(Text(runtime_->MakeDeviceBuffer<int32_t>(1, 99).status()).find("the device is 99"), std::string::npos);
  EXPECT_EQ(runtime_->MakeDeviceBuffer<int32_t>(int64_t{1} << 55).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Made(0).data(), nullptr);
}

TEST_P(DeviceMemory, HostBuffersMoveIntoARun) {
  Graph g("moved");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.Output<int32_t>("y", kN);
  g.ParallelFor("plus one", kN, PlusOne{}, Read(x), Write(y));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int32_t> out = Poisoned(kN);
  io.Set(y, out);
  std::weak_ptr<void> block;
  const std::vector<int32_t> data = Random(kN);
  {
    auto memory = runtime_->MakeHostBuffer<int32_t>(kN);
    ASSERT_OK(memory.status());
    std::copy(data.begin(), data.end(), memory->begin());
    block = memory->block();
    io.Set(x, *std::move(memory));
  }
  EXPECT_FALSE(block.expired());
  io.Set(y, std::span<int32_t>(out).first(1));
  ASSERT_EQ(exec.Launch(io).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(block.expired()) << "a launch that fails leaves it";
  absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(y, out));
  ASSERT_OK(run.status());
  EXPECT_NE(Text(exec.Launch(io).status()).find("nothing is bound"), std::string::npos) << "it has gone with the run";
  ASSERT_OK(run->Wait());
  for (int i = 0; i < 2000 && !block.expired(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(block.expired()) << "the bindings do not hold it";
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(out[i], data[i] + 1);
}

INSTANTIATE_TEST_SUITE_P(Host, DeviceMemory, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceMemory, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::device_memory_test

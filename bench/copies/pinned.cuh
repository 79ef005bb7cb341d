// Single copies between pinned memory and a device, and between two devices: in one run, end to end.
//
// Nothing but the copy is timed: the device's side outlives the run, so it is filled before and looked at afterwards.
// Penstock has a State there and a graph of one Copy node; raw CUDA submits one copy and waits, in up to three ways:
//
//   stream      cudaMemcpyAsync and cudaStreamSynchronize
//   polled      cudaMemcpyAsync, an event, and a loop of cudaEventQuery
//   cudaMemcpy  which waits by itself
//
// A run has a price that does not depend on the size, on both sides, and of small copies there is little else to see.
// So the small sizes come as trains too: 32 copies one behind the other in one run, or in one stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "section.cuh"
#include "words.cuh"

namespace bench {

// A State, and graphs that fill it and look at it.
class StateWords {
 public:
  StateWords(ps::Runtime& runtime, const Region& region, const ps::Extent& extent, int device = 0)
      : state_(Must(runtime.MakeState<uint32_t>("words " + std::to_string(device), extent, {}, {.device = device}))),
        wrong_(runtime, device) {
    ps::Graph make("make"), count("count");
    make_salt_ = make.Param<uint32_t>("salt");
    count_salt_ = count.Param<uint32_t>("salt");
    AddMake(make, ps::Write(state_), region, make_salt_).On(device);
    AddCount(count, ps::Read(state_), region, count_salt_, wrong_).On(device);
    make_ = Bind(Must(runtime.Compile(make, {.slots = 1, .device = device})));
    count_ = Bind(Must(runtime.Compile(count, {.slots = 1, .device = device})));
  }
  const ps::State<uint32_t>& state() const { return state_; }

  void Make(uint32_t salt) {
    make_.io.Set(make_salt_, salt);
    make_.Run();
  }
  int64_t CountWrong(uint32_t salt) {
    wrong_.Forget();
    count_.io.Set(count_salt_, salt);
    count_.Run();
    return wrong_.count();
  }

 private:
  ps::State<uint32_t> state_;
  WrongWords wrong_;
  ps::ParamHandle<uint32_t> make_salt_, count_salt_;
  Bound make_, count_;
};

// The same for a raw way's memory, on the device that was current when it was made.
class RawSide {
 public:
  explicit RawSide(const Region& region) : words_(region), stream_(MakeStream()) {}
  uint32_t* data() const { return words_.data(); }
  cudaStream_t stream() const { return stream_; }
  void Make(uint32_t salt) const {
    words_.Make(salt, stream_);
    Wait(stream_);
  }
  int64_t CountWrong(uint32_t salt) const {
    words_.Forget();
    words_.Count(salt, stream_);
    Wait(stream_);
    return words_.wrong();
  }

 private:
  const RawWords words_;
  const cudaStream_t stream_;
};

// How raw ways wait; `submit` puts the copies into the stream.
template <class Submit>
Sample TimeWaiting(cudaStream_t stream, Submit submit) {
  return TimeOf(submit, [stream] { Wait(stream); });
}
template <class Submit>
Sample TimePolling(cudaStream_t stream, cudaEvent_t event, Submit submit) {
  return TimeOf(
      [&] {
        submit();
        Check(cudaEventRecord(event, stream), "recording");
      },
      [event] {
        cudaError_t code = cudaErrorNotReady;
        while (code == cudaErrorNotReady) code = cudaEventQuery(event);
        Check(code, "asking for an event");
        (void)cudaGetLastError();  // some versions keep the NotReady
      });
}

// What is copied: all of the host's memory in `count` pieces side by side, or a region of it.
struct PinnedCopy {
  Region region;      // of the host's memory that moves
  int64_t host_words;  // all of it
  int64_t count;       // pieces of the one row that the region is then
  bool IsLine() const { return region.rows == 1; }
  int64_t bytes() const { return region.words() * static_cast<int64_t>(sizeof(uint32_t)); }
};

// The ways of one copy, or of one train, in one direction.
class PinnedCopies {
 public:
  PinnedCopies(Section& section, ps::Runtime& runtime, const PinnedCopy& copy, Direction direction, std::string name)
      : section_(section),
        copy_(copy),
        direction_(direction),
        name_(std::move(name)),
        host_(Must(runtime.MakeHostBuffer<uint32_t>(copy.host_words))) {
    if (section.cuda()) AddRaw();
    AddPenstock(runtime);
  }

  void Run(double at_least) {
    section_.Run(ways_, 3);
    if (!section_.cuda()) return;
    const auto rate = [&](const Way& way) {
      return RateOf(SpreadOf(way, &Sample::total, 1), static_cast<double>(copy_.bytes()));
    };
    section_.report().CompareRates(name_ + "; raw: the best by hand", rate(BestRaw(ways_, &Sample::total)),
                                   rate(Find(ways_, kPenstock)), at_least);
    section_.report().Details(name_, "us", ways_, 1);
  }

 private:
  static constexpr const char* kPenstock = "Penstock";

  // `Side` is what holds the device's words.
  template <class Side>
  void Add(Kind kind, const char* way, std::shared_ptr<Side> side, std::function<Sample()> time) {
    const std::span<uint32_t> host = host_.span();
    if (direction_ == Direction::kUp) {
      ways_.push_back(section_.Checked(
          kind, name_, way, [this, host] { FillWords(host, section_.salt()); }, std::move(time),
          [this, side] { return side->CountWrong(section_.salt()); }));
    } else {
      ways_.push_back(section_.Checked(
          kind, name_, way,
          [this, host, side] {
            Poison(host);
            side->Make(section_.salt());
          },
          std::move(time), [this, host] { return CountWrongIn(host, copy_.region, section_.salt()); }));
    }
  }

  void AddRaw() {
    const auto raw = std::make_shared<RawSide>(copy_.region);
    const cudaEvent_t event = MakeEvent();
    Add(Kind::kRaw, "stream", raw,
        [this, raw] { return TimeWaiting(raw->stream(), [&] { Submit(raw->data(), raw->stream()); }); });
    Add(Kind::kRaw, "polled", raw,
        [this, raw, event] { return TimePolling(raw->stream(), event, [&] { Submit(raw->data(), raw->stream()); }); });
    if (copy_.count > 1 || !copy_.IsLine()) return;
    Add(Kind::kRaw, "cudaMemcpy", raw, [this, raw] {
      return TimeOf([&] { Check(cudaMemcpy(To(raw->data()), From(raw->data()), Bytes(), MemcpyKind()), "copying"); },
                    [] {});
    });
  }

  void Submit(uint32_t* device, cudaStream_t stream) const {
    if (!copy_.IsLine()) return SubmitRegion(device, stream);
    const size_t piece = Bytes() / static_cast<size_t>(copy_.count);
    auto* const to = reinterpret_cast<char*>(To(device));
    auto* const from = reinterpret_cast<const char*>(From(device));
    for (int64_t i = 0; i < copy_.count; ++i) {
      const size_t at = static_cast<size_t>(i) * piece;
      Check(cudaMemcpyAsync(to + at, from + at, piece, MemcpyKind(), stream), "copying");
    }
  }
  void SubmitRegion(uint32_t* device, cudaStream_t stream) const {
    const Region& region = copy_.region;
    const auto bytes = [](int64_t words) { return static_cast<size_t>(words) * sizeof(uint32_t); };
    const size_t on_host = bytes(region.pitch), on_device = bytes(region.width);
    Check(cudaMemcpy2DAsync(To(device), IsUp() ? on_device : on_host, From(device), IsUp() ? on_host : on_device,
                            on_device, static_cast<size_t>(region.rows), MemcpyKind(), stream),
          "copying a region");
  }

  void AddPenstock(ps::Runtime& runtime) {
    const Region& region = copy_.region;
    const ps::Extent on_device = copy_.IsLine() ? ps::Extent(region.width) : ps::Extent(region.rows, region.width);
    const auto side = std::make_shared<StateWords>(runtime, region, on_device);
    const int64_t rows = copy_.host_words / region.pitch;
    const ps::Extent on_host = copy_.IsLine() ? ps::Extent(region.width) : ps::Extent(rows, region.pitch);
    ps::Graph graph("pinned copy");
    const auto host = IsUp() ? graph.Input<uint32_t>("host", on_host, ps::kPinned)
                             : graph.Output<uint32_t>("host", on_host, ps::kPinned);
    for (int64_t i = 0; i < copy_.count; ++i) AddCopy(graph, i, host, side->state());
    const auto bound = std::make_shared<Bound>(Bind(Must(runtime.Compile(graph, {.slots = 1}))));
    bound->io.Set(host, host_);
    Add(Kind::kPenstock, kPenstock, side, [side, bound] { return bound->Run(); });
  }
  void AddCopy(ps::Graph& graph, int64_t i, ps::BufferHandle<uint32_t> host, const ps::State<uint32_t>& state) const {
    const Region& region = copy_.region;
    const int64_t piece = region.width / copy_.count;
    ps::Box on_host, on_device;  // wholes
    if (copy_.count > 1) on_host = on_device = ps::Slice({i * piece}, {piece});
    if (!copy_.IsLine()) {
      on_host = ps::Slice({region.first / region.pitch, region.first % region.pitch}, {region.rows, region.width});
    }
    const std::string name = "copy " + std::to_string(i);
    if (IsUp()) {
      graph.Copy(name, ps::Read(host, on_host), ps::Write(state, on_device));
    } else {
      graph.Copy(name, ps::Read(state, on_device), ps::Write(host, on_host));
    }
  }

  bool IsUp() const { return direction_ == Direction::kUp; }
  cudaMemcpyKind MemcpyKind() const { return IsUp() ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost; }
  size_t Bytes() const { return static_cast<size_t>(copy_.bytes()); }
  uint32_t* Host() const { return host_.data() + copy_.region.first; }
  uint32_t* To(uint32_t* device) const { return IsUp() ? device : Host(); }
  const uint32_t* From(uint32_t* device) const { return IsUp() ? Host() : device; }

  Section& section_;
  const PinnedCopy copy_;
  const Direction direction_;
  const std::string name_;
  ps::HostBuffer<uint32_t> host_;
  std::vector<Way> ways_;
};

// In bytes, up to so many KiB.
inline std::vector<int64_t> SizesOf(const Section& section, int64_t most) {
  std::vector<int64_t> sizes;
  for (const int64_t kib : {64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 512 << 10}) {
    const bool fits = section.small() ? kib <= 1 << 10 : kib <= most;
    if (fits) sizes.push_back(kib << 10);
  }
  return sizes;
}
inline double LeastOfRaw(int64_t bytes) { return bytes < int64_t{1} << 20 ? 0.90 : 0.97; }
inline int64_t WordsOf(int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(uint32_t)); }

inline void MeasurePinned(Section& section, ps::Runtime& runtime, const PinnedCopy& copy, Direction direction,
                          const std::string& what, double at_least) {
  const std::string name = NameOf(direction) + (" of " + what);
  section.Try(name, [&] { PinnedCopies(section, runtime, copy, direction, name).Run(at_least); });
}

inline void MeasureSingle(Section& section) {
  ps::Runtime runtime = MakeRuntime(section.one_device());
  for (const Direction direction : kDirections) {
    for (const int64_t bytes : SizesOf(section, 512 << 10)) {
      const int64_t words = WordsOf(bytes);
      MeasurePinned(section, runtime, {Line(words), words, 1}, direction, BytesText(bytes), LeastOfRaw(bytes));
    }
  }
}

inline void MeasureTrains(Section& section) {
  constexpr int64_t kCopies = 32;
  ps::Runtime runtime = MakeRuntime(section.one_device());
  for (const Direction direction : kDirections) {
    for (const int64_t bytes : SizesOf(section, 16 << 10)) {
      const int64_t words = kCopies * WordsOf(bytes);
      MeasurePinned(section, runtime, {Line(words), words, kCopies}, direction, "32 x " + BytesText(bytes),
                    LeastOfRaw(bytes));
    }
  }
}

inline void MeasureTile(Section& section) {
  const int64_t side = section.small() ? 100 : 4096, pitch = 4 * side, margin = 32;
  const Region tile{side, side, margin * pitch + 3 * side / 2, pitch};
  const std::string what =
      std::to_string(side) + " x " + std::to_string(side) + " words of an image " + std::to_string(pitch) + " wide";
  ps::Runtime runtime = MakeRuntime(section.one_device());
  for (const Direction direction : kDirections) {
    MeasurePinned(section, runtime, {tile, (side + 2 * margin) * pitch, 1}, direction, what, 0.97);
  }
}

}  // namespace bench

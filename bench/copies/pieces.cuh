// 256 small pieces from and to pinned memory, and memory that is not: by hand (pieces_raw.cuh), and as Penstock
// graphs of 256 Copy nodes, which the plan gathers.
//
// As with large copies (unpinned.cuh) a kernel looks at what came up, or has just written what goes down, in all
// ways alike. The pieces lie in random order side by side on the device, and at random places of four times the memory
// on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pieces_raw.cuh"
#include "section.cuh"
#include "words.cuh"

namespace bench {

class PenstockPieces {
 public:
  PenstockPieces(ps::Runtime& runtime, const Places& places, uint32_t* heap, Direction direction, ps::Where where)
      : wrong_(runtime) {
    const bool up = direction == Direction::kUp;
    const Region line = Line(kPieces * kPieceWords);
    ps::Graph graph("pieces");
    salt_ = graph.Param<uint32_t>("salt");
    const auto device = graph.Buffer<uint32_t>("device", line.words());
    std::vector<ps::BufferHandle<uint32_t>> host;
    if (!up) AddMake(graph, ps::Write(device), line, salt_);
    for (size_t i = 0; i < kPieces; ++i) {
      const std::string name = "piece " + std::to_string(i);
      const ps::Box box = ps::Slice({places.device[i]}, {kPieceWords});
      host.push_back(up ? graph.Input<uint32_t>(name, kPieceWords, where)
                        : graph.Output<uint32_t>(name, kPieceWords, where));
      if (up) graph.Copy("copy " + std::to_string(i), ps::Read(host[i]), ps::Write(device, box));
      if (!up) graph.Copy("copy " + std::to_string(i), ps::Read(device, box), ps::Write(host[i]));
    }
    if (up) AddCount(graph, ps::Read(device), line, salt_, wrong_);
    bound_ = Bind(Must(runtime.Compile(graph, {.slots = 1})));
    for (size_t i = 0; i < kPieces; ++i) {
      bound_.io.Set(host[i], std::span(heap + places.host[i], static_cast<size_t>(kPieceWords)));
    }
  }

  Sample Run(uint32_t salt) {
    bound_.io.Set(salt_, salt);
    return bound_.Run();
  }
  void Forget() { wrong_.Forget(); }
  int64_t wrong() const { return wrong_.count(); }
  std::string plan() const { return bound_.exec.PlanText(); }

 private:
  WrongWords wrong_;
  ps::ParamHandle<uint32_t> salt_;
  Bound bound_;
};

// The ways of one direction, from or to pinned memory and memory that is not.
class PieceCopies {
 public:
  PieceCopies(Section& section, ps::Runtime& runtime, Direction direction)
      : section_(section),
        direction_(direction),
        plain_heap_(static_cast<size_t>(kHostPlaces * kPieceWords)),
        pinned_heap_(Must(runtime.MakeHostBuffer<uint32_t>(kHostPlaces * kPieceWords))),
        packed_(Must(runtime.MakeHostBuffer<uint32_t>(kPieces * kPieceWords))) {
    for (const bool pinned : {true, false}) {
      if (section.cuda()) AddRaw(pinned);
      AddPenstock(runtime, pinned);
    }
  }

  void Run() {
    section_.Run(ways_, 2);
    if (!section_.cuda()) return;
    for (const bool pinned : {true, false}) {
      const double target = pinned ? 7 : 3;
      Compare(pinned, Name(kLoop, pinned), "loop", target);
      if (!pinned) Compare(pinned, Name(kLoop, true), "loop with pinned memory", target);
      if (takes_batch_[pinned]) Compare(pinned, Name(kBatch, pinned), "batch", 0);
      Compare(pinned, Name(kKernel, pinned), "kernel by hand", 0);
    }
    section_.report().Details(NameOf(direction_), "us", ways_, 1);
  }

 private:
  static constexpr const char *kPenstock = "Penstock", *kLoop = "loop", *kBatch = "batch", *kKernel = "kernel";

  static std::string MemoryText(bool pinned) { return pinned ? "pinned" : "not pinned"; }
  static std::string Name(const char* way, bool pinned) { return way + (", " + MemoryText(pinned)); }
  std::span<uint32_t> Heap(bool pinned) { return pinned ? pinned_heap_.span() : std::span<uint32_t>(plain_heap_); }

  void Compare(bool pinned, const std::string& raw, const std::string& called, double at_least) {
    const auto rate = [&](const std::string& way) {
      return RateOf(SpreadOf(Find(ways_, way), &Sample::total, 1), kPiecesBytes);
    };
    section_.report().CompareRates(
        std::string(NameOf(direction_)) + " of 256 x 16 KiB, " + MemoryText(pinned) + "; raw: " + called, rate(raw),
        rate(Name(kPenstock, pinned)), at_least);
  }

  template <class Side, class Time>
  void Add(Kind kind, const char* way, bool pinned, std::shared_ptr<Side> side, Time time) {
    const bool up = direction_ == Direction::kUp;
    const std::span<uint32_t> heap = Heap(pinned);
    const auto draw = [this, heap, side, up] {
      Poison(heap);
      if (up) places_.Fill(heap, section_.salt());
      side->Forget();
    };
    const auto wrong = [this, heap, side, up] {
      return up ? side->wrong() : places_.CountWrongPieces(heap, section_.salt());
    };
    const auto run = [this, side, time] { return time(*side, section_.salt()); };
    ways_.push_back(section_.Checked(kind, NameOf(direction_), Name(way, pinned), draw, run, wrong));
  }

  void AddRaw(bool pinned) {
    const auto raw = std::make_shared<RawPieces>(places_, Heap(pinned).data(), direction_);
    const auto add = [&](const char* way, auto time) { Add(Kind::kRaw, way, pinned, raw, time); };
    add(kLoop, [](RawPieces& pieces, uint32_t salt) { return pieces.Loop(salt); });
    takes_batch_[pinned] = raw->TakesBatch();
    if (takes_batch_[pinned]) {
      add(kBatch, [](RawPieces& pieces, uint32_t salt) { return pieces.Batch(salt); });
    } else {
      section_.report().Note("cudaMemcpyBatchAsync refuses host memory that is " + MemoryText(pinned) + ".");
    }
    if (!pinned) {
      return add(kKernel,
                 [packed = packed_.data()](RawPieces& pieces, uint32_t salt) { return pieces.Packed(salt, packed); });
    }
    add(kKernel, [](RawPieces& pieces, uint32_t salt) { return pieces.Kernel(salt); });
    ways_.push_back({Kind::kScale, "no copies, only the kernel that looks or writes",
                     [this, raw] { return raw->KernelAlone(section_.salt()); }});
  }

  void AddPenstock(ps::Runtime& runtime, bool pinned) {
    const auto penstock = std::make_shared<PenstockPieces>(runtime, places_, Heap(pinned).data(), direction_,
                                                           pinned ? ps::kPinned : ps::kHost);
    Add(Kind::kPenstock, kPenstock, pinned, penstock,
        [](PenstockPieces& pieces, uint32_t salt) { return pieces.Run(salt); });
    if (penstock->plan().find(" batch ") == std::string::npos) {
      section_.Failed("the plan for pieces that are " + MemoryText(pinned) + " has no batch");
    }
  }

  Section& section_;
  const Direction direction_;
  const Places places_;
  std::vector<uint32_t> plain_heap_;
  ps::HostBuffer<uint32_t> pinned_heap_, packed_;
  bool takes_batch_[2] = {};  // whether cudaMemcpyBatchAsync takes memory that is not pinned, and pinned
  std::vector<Way> ways_;
};

inline void MeasurePieces(Section& section) {
  ps::Runtime runtime = MakeRuntime(section.one_device());
  for (const Direction direction : kDirections) {
    section.Try(NameOf(direction), [&] { PieceCopies(section, runtime, direction).Run(); });
  }
}

}  // namespace bench

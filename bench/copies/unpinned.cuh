// Large copies from and to memory that is not pinned, in one direction and in both at once.
//
// What all ways do: upload and count the words that are wrong with a kernel, download what a kernel has just written,
// or both; so every copy has a user and fresh words. The kernels take the same time everywhere, and count.
//
//   cudaMemcpy   the driver stages
//   registered   the memory is pinned for the copy, and given back after it
//   pinned       the same copies with memory that was pinned from the start: what no staging can beat
//   Penstock     an Input or Output that is kHost
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"
#include "section.cuh"
#include "staging_log.h"
#include "words.cuh"

namespace bench {

// The host's side of a way. Null: not that direction.
struct HostEnds {
  uint32_t* up = nullptr;
  uint32_t* down = nullptr;
};

// Words that go down are of another salt than those that go up.
inline uint32_t SaltDown(uint32_t salt) { return ~salt; }

class RawLarge {
 public:
  explicit RawLarge(int64_t words) : in_(Line(words)), out_(Line(words)), up_(MakeStream()), down_(MakeStream()) {}

  // Each on stream 0, where cudaMemcpy is.
  Sample Pageable(const HostEnds& ends, uint32_t salt) const {
    return TimeOf(
        [&] {
          if (ends.up != nullptr) {
            Check(cudaMemcpy(in_.data(), ends.up, in_.bytes(), cudaMemcpyHostToDevice), "uploading");
            in_.Count(salt, nullptr);
          }
          if (ends.down != nullptr) {
            out_.Make(SaltDown(salt), nullptr);
            Check(cudaMemcpy(ends.down, out_.data(), out_.bytes(), cudaMemcpyDeviceToHost), "downloading");
          }
        },
        [] { Wait(nullptr); });
  }

  Sample Pinned(const HostEnds& ends, uint32_t salt) const {
    return TimeOf([&] { Submit(ends, salt); }, [&] { Wait(up_), Wait(down_); });
  }

  // Whether this memory can be pinned afterwards.
  bool Registers(const HostEnds& ends) const {
    uint32_t* const host = ends.up != nullptr ? ends.up : ends.down;
    const bool can = cudaHostRegister(host, in_.bytes(), cudaHostRegisterDefault) == cudaSuccess;
    if (can) Check(cudaHostUnregister(host), "unregistering");
    (void)cudaGetLastError();
    return can;
  }
  Sample Registered(const HostEnds& ends, uint32_t salt) const {
    uint32_t* const host = ends.up != nullptr ? ends.up : ends.down;
    return TimeOf(
        [&] {
          Check(cudaHostRegister(host, in_.bytes(), cudaHostRegisterDefault), "registering");
          Submit(ends, salt);
        },
        [&] {
          Wait(up_), Wait(down_);
          Check(cudaHostUnregister(host), "unregistering");
        });
  }

  Sample Kernels(uint32_t salt, bool up, bool down) const {
    return TimeOf(
        [&] {
          if (up) in_.Count(salt, up_);
          if (down) out_.Make(SaltDown(salt), down_);
        },
        [&] { Wait(up_), Wait(down_); });
  }

  void Forget() const { in_.Forget(); }
  int64_t wrong() const { return in_.wrong(); }

 private:
  void Submit(const HostEnds& ends, uint32_t salt) const {
    if (ends.down != nullptr) out_.Make(SaltDown(salt), down_);
    if (ends.up != nullptr) {
      Check(cudaMemcpyAsync(in_.data(), ends.up, in_.bytes(), cudaMemcpyHostToDevice, up_), "uploading");
      in_.Count(salt, up_);
    }
    if (ends.down != nullptr) {
      Check(cudaMemcpyAsync(ends.down, out_.data(), out_.bytes(), cudaMemcpyDeviceToHost, down_), "downloading");
    }
  }

  const RawWords in_, out_;
  const cudaStream_t up_, down_;
};

class PenstockLarge {
 public:
  PenstockLarge(const ps::RuntimeOptions& options, int64_t words, const HostEnds& ends)
      : counts_(ends.up != nullptr),
        makes_(ends.down != nullptr),
        runtime_(Must(ps::Runtime::Create(options))),
        wrong_(runtime_) {
    const Region line = Line(words);
    const auto size = static_cast<size_t>(words);
    ps::Graph graph("large");
    ps::BufferHandle<uint32_t> in, out;
    if (counts_) {
      salt_ = graph.Param<uint32_t>("salt");
      in = graph.Input<uint32_t>("in", words);
      AddCount(graph, ps::Read(in), line, salt_, wrong_);
    }
    if (makes_) {
      salt_down_ = graph.Param<uint32_t>("salt down");
      out = graph.Output<uint32_t>("out", words);
      AddMake(graph, ps::Write(out), line, salt_down_);
    }
    bound_ = Bind(Must(runtime_.Compile(graph, {.slots = 1})));
    if (counts_) bound_.io.Set(in, std::span(ends.up, size));
    if (makes_) bound_.io.Set(out, std::span(ends.down, size));
  }

  Sample Run(uint32_t salt) {
    if (counts_) bound_.io.Set(salt_, salt);
    if (makes_) bound_.io.Set(salt_down_, SaltDown(salt));
    return bound_.Run();
  }
  void Forget() { wrong_.Forget(); }
  int64_t wrong() const { return wrong_.count(); }

 private:
  const bool counts_, makes_;
  ps::Runtime runtime_;
  WrongWords wrong_;
  ps::ParamHandle<uint32_t> salt_, salt_down_;
  Bound bound_;
};

// The memory of one direction or two, both ordinary and pinned.
class LargeMemory {
 public:
  explicit LargeMemory(const std::string& device, int64_t words) : words_(words), runtime_(MakeRuntime(device)) {}
  HostEnds Plain(bool up, bool down) {
    if (up && plain_up_ == nullptr) plain_up_.reset(new uint32_t[static_cast<size_t>(words_)]);
    if (down && plain_down_ == nullptr) plain_down_.reset(new uint32_t[static_cast<size_t>(words_)]);
    return {up ? plain_up_.get() : nullptr, down ? plain_down_.get() : nullptr};
  }
  HostEnds Pinned(bool up, bool down) {
    if (up && pinned_up_.size() == 0) pinned_up_ = Must(runtime_.MakeHostBuffer<uint32_t>(words_));
    if (down && pinned_down_.size() == 0) pinned_down_ = Must(runtime_.MakeHostBuffer<uint32_t>(words_));
    return {up ? pinned_up_.data() : nullptr, down ? pinned_down_.data() : nullptr};
  }

 private:
  const int64_t words_;
  ps::Runtime runtime_;
  std::unique_ptr<uint32_t[]> plain_up_, plain_down_;
  ps::HostBuffer<uint32_t> pinned_up_, pinned_down_;
};

// The ways of one direction, or of both at once.
class LargeCopies {
 public:
  // `threads`, in words `called`: of the Penstock way beside that with as many as the runtime finds best.
  LargeCopies(Section& section, LargeMemory& memory, int64_t words, bool up, bool down, int threads,
              const std::string& called)
      : section_(section), words_(words), up_(up), down_(down), threads_(called), plain_(memory.Plain(up, down)) {
    FillWords(Words(plain_.up), 1);  // touched before anything is timed
    Poison(Words(plain_.down));
    if (section.cuda()) AddRaw(memory.Pinned(up, down));
    AddPenstock(threads_, {.devices = section.one_device(), .staging = {.threads = threads}});
    AddPenstock(kDefault, log_.Listen({.devices = section.one_device()}));
  }

  void Run() {
    section_.Run(ways_, 1);
    if (!section_.cuda()) return;
    Report& report = section_.report();
    const std::string what = Name() + " of " + BytesText(Bytes()) + " not pinned, ";
    for (const std::string& threads : {threads_, std::string(kDefault)}) {
      const Spread penstock = Rate(Find(ways_, "Penstock, " + threads));
      if (up_ != down_) {
        report.CompareRates(what + threads + "; raw: cudaMemcpy", Rate(Find(ways_, kPageable)), penstock, 5);
        report.CompareRates(what + threads + "; raw: the best from such memory", Rate(BestRaw(ways_, &Sample::total)),
                            penstock, 0);
      } else {
        report.Alone(what + threads + ", in sum", "GB/s", penstock, AtLeast(penstock.median, 85));
      }
      report.CompareRates(what + threads + "; raw: pinned", Rate(Find(ways_, kPinned)), penstock,
                          up_ != down_ ? 0.90 : 0);
    }
    report.Note(Name() + ": the default was " + log_.text() + ".");
    report.Details(Name(), "us", ways_, 1);
  }

 private:
  static constexpr const char *kPageable = "cudaMemcpy", *kRegistered = "registered", *kPinned = "pinned",
                              *kDefault = "default threads";

  std::string Name() const { return up_ && down_ ? "both directions at once" : up_ ? "H2D" : "D2H"; }
  int64_t Bytes() const { return words_ * static_cast<int64_t>(sizeof(uint32_t)); }
  std::span<uint32_t> Words(uint32_t* words) const {
    return {words, words == nullptr ? 0 : static_cast<size_t>(words_)};
  }
  Spread Rate(const Way& way) const {
    const int64_t both = up_ && down_ ? 2 : 1;
    return RateOf(SpreadOf(way, &Sample::total, 1), static_cast<double>(both * Bytes()));
  }

  template <class Side, class Time>
  void Add(Kind kind, const std::string& name, std::shared_ptr<Side> side, const HostEnds& ends, Time time) {
    const auto draw = [this, side, ends] {
      FillWords(Words(ends.up), section_.salt());
      Poison(Words(ends.down));
      side->Forget();
    };
    const auto wrong = [this, side, ends] {
      return (ends.up != nullptr ? side->wrong() : 0) + CountWrong(Words(ends.down), SaltDown(section_.salt()));
    };
    ways_.push_back(section_.Checked(kind, Name(), name, draw, time, wrong));
  }

  void AddRaw(const HostEnds& pinned) {
    const auto raw = std::make_shared<RawLarge>(words_);
    const auto add = [&](Kind kind, const char* name, const HostEnds& ends, auto method) {
      Add(kind, name, raw, ends, [this, raw, ends, method] { return ((*raw).*method)(ends, section_.salt()); });
    };
    if (up_ != down_) {
      add(Kind::kRaw, kPageable, plain_, &RawLarge::Pageable);
      if (raw->Registers(plain_)) {
        add(Kind::kRaw, kRegistered, plain_, &RawLarge::Registered);
      } else {
        section_.report().Note("The memory cannot be registered.");
      }
    }
    add(Kind::kFloor, kPinned, pinned, &RawLarge::Pinned);
    ways_.push_back({Kind::kScale, "kernels alone", [this, raw] { return raw->Kernels(section_.salt(), up_, down_); }});
  }
  void AddPenstock(const std::string& threads, const ps::RuntimeOptions& options) {
    const auto penstock = std::make_shared<PenstockLarge>(options, words_, plain_);
    Add(Kind::kPenstock, "Penstock, " + threads, penstock, plain_,
        [this, penstock] { return penstock->Run(section_.salt()); });
  }

  Section& section_;
  const int64_t words_;
  const bool up_, down_;
  const std::string threads_;
  const HostEnds plain_;
  const StagingLog log_;
  std::vector<Way> ways_;
};

inline int64_t LargeWords(const Section& section) {
  return section.small() ? (int64_t{1} << 20) + 3 : int64_t{1} << 29;
}
inline void MeasureUnpinned(Section& section) {
  LargeMemory memory(section.one_device(), LargeWords(section));
  for (const Direction direction : kDirections) {
    const bool up = direction == Direction::kUp;
    section.Try(NameOf(direction),
                [&] { LargeCopies(section, memory, LargeWords(section), up, !up, 6, "6 threads").Run(); });
  }
}
inline void MeasureBoth(Section& section) {
  LargeMemory memory(section.one_device(), LargeWords(section));
  LargeCopies(section, memory, LargeWords(section), true, true, 12, "6 threads a direction").Run();
}

}  // namespace bench

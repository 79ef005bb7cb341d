// Hand-written CUDA for the copy pipeline, written to win, and the floor beneath every way.
//
// One host thread submits everything at once and then waits; no stream gets more than 1020 commands. What competes:
//   engines   three streams, one each for uploads, kernels and downloads, and events where an item passes from one to
//   the
//             next. No engine ever waits for another's turn, and each works in the order of the items. `sets` pairs of
//             device buffers take turns, with events that keep an item out of a pair until its last user is done; with
//             as many sets as items there is nothing to wait for. Usually the best way there is.
//   pieces    the same with every item cut in two: the pipeline fills and drains with half an item, but a copy of 2 MiB
//             is slower a byte.
//   slots     a stream for each pair of buffers, in which an item goes up, through and down: no event at all, and the
//             device sorts out the engines. What most programs do.
//
// Threads: one at a time. What it allocates lives as long as the process.
#pragma once

#include <algorithm>
#include <vector>

#include "cuda_check.cuh"
#include "work.cuh"

namespace bench {

class RawPipeline {
 public:
  // For the share that the device has of the items when so many devices have as much each. Work begins with the device
  // made the calling thread's.
  explicit RawPipeline(const Items& items, int device = 0, int devices = 1)
      : items_(items),
        device_(Choose(device)),
        count_(items.count / devices),
        first_(device * count_),
        in_(MakeDeviceMemory<uint32_t>(Words())),
        out_(MakeDeviceMemory<uint32_t>(Words())) {
    for (int i = 0; i < count_; ++i) streams_.push_back(MakeStream());
    for (std::vector<cudaEvent_t>* events : {&uploaded_, &computed_, &downloaded_}) {
      for (int i = 0; i < kMaxPieces * count_; ++i) events->push_back(MakeEvent());
    }
    Check(cudaMemset(out_, 0x5A, Words() * sizeof(uint32_t)), "filling device memory");
  }

  static constexpr int kMaxPieces = 2;

  Sample Engines(int sets, int pieces) {
    const int64_t words = items_.words / pieces;
    const cudaStream_t up = streams_[0], work = streams_[1], down = streams_[2];
    return Time({down}, [&] {
      for (int i = 0; i < count_ * pieces; ++i) {
        const auto set = static_cast<size_t>(i % sets);
        const Part part = PartOf(i / pieces, i % pieces * words, static_cast<int64_t>(set) * words);
        if (i >= sets) Wait(up, computed_[set]);
        Upload(part, words, up);
        Record(uploaded_[set], up);
        Wait(work, uploaded_[set]);
        if (i >= sets) Wait(work, downloaded_[set]);
        Compute(part, words, work);
        Record(computed_[set], work);
        Wait(down, computed_[set]);
        Download(part, words, down);
        Record(downloaded_[set], down);
      }
    });
  }

  Sample Slots(int sets) {
    const std::vector<cudaStream_t> streams(streams_.begin(), streams_.begin() + sets);
    return Time(streams, [&] {
      for (int i = 0; i < count_; ++i) {
        const int set = i % sets;
        const Part part = PartOf(i, 0, set * items_.words);
        Upload(part, items_.words, streams[static_cast<size_t>(set)]);
        Compute(part, items_.words, streams[static_cast<size_t>(set)]);
        Download(part, items_.words, streams[static_cast<size_t>(set)]);
      }
    });
  }

  // The engines by themselves: no pipeline is faster than uploads and downloads at once, or than all its kernels.
  Sample Alone(bool uploads, bool kernels, bool downloads) {
    const cudaStream_t up = streams_[0], work = streams_[1], down = streams_[2];
    return Time({up, work, down}, [&] {
      for (int i = 0; i < count_; ++i) {
        const Part part = PartOf(i, 0, i * items_.words);
        if (uploads) Upload(part, items_.words, up);
        if (kernels) Compute(part, items_.words, work);
        if (downloads) Download(part, items_.words, down);
      }
    });
  }

 private:
  struct Part {
    const uint32_t* host_in;
    uint32_t* host_out;
    uint32_t *in, *out;
  };

  size_t Words() const { return static_cast<size_t>(count_) * static_cast<size_t>(items_.words); }
  Part PartOf(int of_share, int64_t offset, int64_t device_offset) const {
    const auto item = static_cast<size_t>(first_ + of_share);
    return {items_.in[item].data() + offset, items_.out[item].data() + offset, in_ + device_offset,
            out_ + device_offset};
  }

  template <class Submit>
  Sample Time(const std::vector<cudaStream_t>& last, Submit submit) {
    Choose(device_);
    const Clock::time_point begin = Clock::now();
    submit();
    const Clock::time_point submitted = Clock::now();
    for (const cudaStream_t stream : last) Check(cudaStreamSynchronize(stream), "waiting for raw work");
    const Clock::time_point end = Clock::now();
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  static void Upload(const Part& part, int64_t words, cudaStream_t stream) {
    Check(cudaMemcpyAsync(part.in, part.host_in, static_cast<size_t>(words) * sizeof(uint32_t), cudaMemcpyHostToDevice,
                          stream),
          "uploading");
  }
  void Compute(const Part& part, int64_t words, cudaStream_t stream) const {
    MixKernel<<<static_cast<unsigned>((words + 255) / 256), 256, 0, stream>>>(part.in, part.out, words, items_.rounds,
                                                                              items_.map);
    Check(cudaGetLastError(), "launching");
  }
  static void Download(const Part& part, int64_t words, cudaStream_t stream) {
    Check(cudaMemcpyAsync(part.host_out, part.out, static_cast<size_t>(words) * sizeof(uint32_t),
                          cudaMemcpyDeviceToHost, stream),
          "downloading");
  }
  static void Record(cudaEvent_t event, cudaStream_t stream) { Check(cudaEventRecord(event, stream), "recording"); }
  static void Wait(cudaStream_t stream, cudaEvent_t event) { Check(cudaStreamWaitEvent(stream, event, 0), "waiting"); }

  const Items& items_;
  const int device_, count_, first_;
  uint32_t *const in_, *const out_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> uploaded_, computed_, downloaded_;
};

// Sets items.rounds so that a kernel takes as long as the upload of its item. Both are measured back to back, 64 at
// once.
inline void MakeKernelAsLongAsUpload(Items& items, RawPipeline& raw) {
  const auto median = [&](bool uploads, bool kernels) {
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) times.push_back(raw.Alone(uploads, kernels, false).total);
    return SpreadOf(times).median;
  };
  const auto kernels = [&](uint32_t rounds) {
    items.rounds = rounds;
    return median(false, true);
  };
  items.Draw();
  kernels(1000);  // clocks up, code loaded
  const double upload = median(true, false);
  // Linear but for launch overheads, so two points and one correction do.
  double low = 200, low_time = kernels(200), high = 2000, high_time = kernels(2000);
  for (int i = 0; i < 2; ++i) {
    const double rounds = std::max(1.0, low + (upload - low_time) * (high - low) / (high_time - low_time));
    low = rounds * 0.95, low_time = kernels(static_cast<uint32_t>(low));
    high = rounds * 1.05, high_time = kernels(static_cast<uint32_t>(high));
  }
  const double rounds = low + (upload - low_time) * (high - low) / (high_time - low_time);
  items.rounds = static_cast<uint32_t>(std::max(1.0, rounds));
}

}  // namespace bench

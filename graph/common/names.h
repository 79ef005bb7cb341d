// Names: the names of a model's records of one kind in one text, each with a hash, since the records lie far apart and
// their names even farther.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/common/hash.h"

namespace penstock::graph {

class Names {
 public:
  void Reserve(size_t count) { end_.reserve(count), hash_.reserve(count); }
  void Add(std::string_view name) {
    text_ += name;
    end_.push_back(text_.size());
    hash_.push_back(Hash(kSeed).Text(name).value());
  }

  size_t size() const { return hash_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i > 0 ? end_[i - 1] : 0;
    return std::string_view(text_).substr(begin, end_[i] - begin);
  }
  uint64_t hash(size_t i) const { return hash_[i]; }

 private:
  static constexpr uint64_t kSeed = 4;  // distinguishes names from everything else that is hashed

  std::string text_;
  std::vector<size_t> end_;
  std::vector<uint64_t> hash_;
};

}  // namespace penstock::graph

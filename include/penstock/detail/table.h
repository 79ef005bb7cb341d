// Id and Table: an index that says what it counts, and a vector indexed by it.
//
// A model and a plan are flat arrays whose records name each other by index. An Id converts to int32_t and back, so it
// can be computed, compared and printed as one, but not to another kind of Id: a lane cannot be used where a node is
// meant. Nothing is checked at run time.
//
//   using NodeId = Id<struct NodeTag>;
//   Table<NodeId, Node> nodes;
//   for (NodeId n : nodes.ids()) Visit(nodes[n]);
//
// Threads: plain values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock::detail {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  // names nothing
  constexpr Id(int32_t index) : index_(index) {}  // NOLINT(google-explicit-constructor): see above
  constexpr operator int32_t() const { return index_; }  // NOLINT(google-explicit-constructor)
  constexpr Id& operator++() {
    ++index_;
    return *this;
  }

 private:
  int32_t index_ = -1;
};
template <class A, class B>
  requires(!std::same_as<A, B>)
bool operator==(Id<A>, Id<B>) = delete;

// The ids from 0 to `count` - 1.
template <class I>
class IdRange {
 public:
  struct Iterator {
    I id;
    constexpr I operator*() const { return id; }
    constexpr Iterator& operator++() {
      ++id;
      return *this;
    }
    constexpr bool operator==(const Iterator& other) const { return id == other.id; }
  };
  constexpr explicit IdRange(int32_t count) : count_(count) {}
  constexpr Iterator begin() const { return {I(0)}; }
  constexpr Iterator end() const { return {I(count_)}; }

 private:
  int32_t count_;
};

// A vector of T indexed by I, or by a plain integer.
template <class I, class T>
class Table : public std::vector<T> {
 public:
  using Vector = std::vector<T>;
  using Vector::Vector;
  using Vector::operator=;
  explicit Table(Vector vector) : Vector(std::move(vector)) {}

  typename Vector::reference operator[](I id) { return (*this)[static_cast<int32_t>(id)]; }
  typename Vector::const_reference operator[](I id) const { return (*this)[static_cast<int32_t>(id)]; }
  template <std::integral N>
  typename Vector::reference operator[](N index) {
    return Vector::operator[](static_cast<size_t>(index));
  }
  template <std::integral N>
  typename Vector::const_reference operator[](N index) const {
    return Vector::operator[](static_cast<size_t>(index));
  }

  int32_t count() const { return static_cast<int32_t>(this->size()); }
  I next() const { return I(count()); }  // the id of the element that push_back will add
  IdRange<I> ids() const { return IdRange<I>(count()); }
};

}  // namespace penstock::detail

// A list of plain values. A short list needs no heap memory. `push` returns false if memory runs
// out.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace penstock {

template <typename T, size_t kInPlace = 64>
class Scratch {
  static_assert(std::is_trivially_copyable<T>::value, "values are moved as bytes");

 public:
  Scratch() noexcept = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (data_ != in_place_) std::free(data_);
  }

  T* data() noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  void shrink(size_t size) noexcept { size_ = size; }

  bool push(const T& value) noexcept {
    if (size_ == capacity_ && !reserve(capacity_ * 2)) return false;
    data_[size_++] = value;
    return true;
  }

  bool reserve(size_t capacity) noexcept {
    if (capacity <= capacity_) return true;
    void* const grown = std::realloc(data_ == in_place_ ? nullptr : data_, capacity * sizeof(T));
    if (grown == nullptr) return false;
    if (data_ == in_place_) std::memcpy(grown, in_place_, size_ * sizeof(T));
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
    return true;
  }

 private:
  T in_place_[kInPlace];
  T* data_ = in_place_;
  size_t size_ = 0;
  size_t capacity_ = kInPlace;
};

}  // namespace penstock

// A stack of bits that grows. Each bit states whether an open container is an object or an array.
// `push` returns false if memory runs out. Up to 64 levels need no heap memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace penstock {

class BitStack {
 public:
  BitStack() noexcept = default;
  BitStack(const BitStack&) = delete;
  BitStack& operator=(const BitStack&) = delete;
  ~BitStack() { std::free(spilled_); }

  bool empty() const noexcept { return depth_ == 0; }
  size_t depth() const noexcept { return depth_; }
  bool top() const noexcept { return (bits_ & 1) != 0; }
  void clear() noexcept {
    bits_ = 0;
    depth_ = 0;
  }

  bool push(bool bit) noexcept {
    if (depth_ != 0 && depth_ % 64 == 0) {
      if (!spill()) return false;
    }
    bits_ = bits_ << 1 | (bit ? 1u : 0u);
    depth_++;
    return true;
  }

  void pop() noexcept {
    depth_--;
    bits_ = depth_ != 0 && depth_ % 64 == 0 ? spilled_[depth_ / 64 - 1] : bits_ >> 1;
  }

  void release_memory() noexcept {
    clear();
    std::free(spilled_);
    spilled_ = nullptr;
    capacity_ = 0;
  }

 private:
  bool spill() noexcept {
    const size_t at = depth_ / 64 - 1;
    if (at == capacity_) {
      const size_t wanted = capacity_ == 0 ? 64 : capacity_ * 2;
      void* grown = std::realloc(spilled_, wanted * sizeof(uint64_t));
      if (grown == nullptr) return false;
      spilled_ = static_cast<uint64_t*>(grown);
      capacity_ = wanted;
    }
    spilled_[at] = bits_;
    return true;
  }

  uint64_t bits_ = 0;
  size_t depth_ = 0;
  uint64_t* spilled_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace penstock

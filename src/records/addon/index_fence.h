// Detects if a walk reads past the last entry of the index. This is necessary because the walk has
// no bounds checks. It works only with AddressSanitizer.

#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace penstock {

class IndexFence {
 public:
#if defined(__SANITIZE_ADDRESS__)
  void close(const uint32_t* end, const uint32_t* memory_end) noexcept {
    const auto left = static_cast<size_t>(memory_end - end);
    at_ = end;
    size_ = (left < kEntries ? left : kEntries) * sizeof *end;
    __asan_poison_memory_region(at_, size_);
  }
  void open() noexcept {
    if (size_ != 0) __asan_unpoison_memory_region(at_, size_);
    size_ = 0;
  }

 private:
  static constexpr size_t kEntries = 256;
  const uint32_t* at_ = nullptr;
  size_t size_ = 0;
#else
  void close(const uint32_t*, const uint32_t*) noexcept {}
  void open() noexcept {}
#endif
};

}  // namespace penstock

// Compares short texts, which takes less time than a call of memcmp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock {

template <typename Word>
inline bool is_same_word(const uint8_t* one, const uint8_t* other) noexcept {
  Word words[2];
  std::memcpy(&words[0], one, sizeof(Word));
  std::memcpy(&words[1], other, sizeof(Word));
  return words[0] == words[1];
}

/** Returns whether `length` bytes are the same. */
inline bool same_bytes(const uint8_t* one, const uint8_t* other, size_t length) noexcept {
  if (length >= sizeof(uint64_t)) {
    // The last word overlaps the word before it.
    const size_t last = length - sizeof(uint64_t);
    for (size_t at = 0; at < last; at += sizeof(uint64_t))
      if (!is_same_word<uint64_t>(one + at, other + at)) return false;
    return is_same_word<uint64_t>(one + last, other + last);
  }
  if (length >= sizeof(uint32_t)) {
    const size_t last = length - sizeof(uint32_t);
    return is_same_word<uint32_t>(one, other) && is_same_word<uint32_t>(one + last, other + last);
  }
  for (size_t at = 0; at < length; at++)
    if (one[at] != other[at]) return false;
  return true;
}

}  // namespace penstock

// Finds the API key of an array of items, and checks that all items have the same key.

#pragma once

#include "json_walk.h"

namespace penstock {

class ArrayKeys {
 public:
  explicit ArrayKeys(const uint8_t* text) noexcept : text_(text) {}

  PENSTOCK_INLINE void note(const Token& key, uint32_t item) noexcept {
    if (key.type == kAbsent || other_item_ != 0) return;
    if (first_.type == kAbsent) first_ = key;
    else if (!has_bytes_of_first(key) && !has_text_of_first(key)) other_item_ = item;
  }

  const Token& first() const noexcept { return first_; }
  uint32_t other_item() const noexcept { return other_item_; }

 private:
  PENSTOCK_INLINE bool has_bytes_of_first(const Token& key) const noexcept {
    const size_t length = key.end - key.start;
    return length == first_.end - first_.start &&
           std::memcmp(text_ + key.start, text_ + first_.start, length) == 0;
  }
  bool has_text_of_first(const Token& key) noexcept;

  const uint8_t* const text_;
  Token first_{};
  uint32_t other_item_ = 0;
  bool first_is_read_ = false;
  size_t first_length_ = 0;
  uint8_t first_text_[kKeyTokenBytesMax];
};

}  // namespace penstock

// The offsets of the tokens of a text. simdjson's stage 1 finds them, one window of the text at a
// time. The order of the tokens is not checked here. If the list is full, `more` removes the tokens
// that were passed, and indexes more tokens.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "index_fence.h"
#include "simdjson.h"

namespace penstock {

using Cursor = const uint32_t*;

class TokenIndex {
 public:
  TokenIndex() noexcept = default;
  TokenIndex(const TokenIndex&) = delete;
  TokenIndex& operator=(const TokenIndex&) = delete;
  ~TokenIndex() { release(); }

  /**
   * Indexes the text until the list is full. Returns false if stage 1 rejects a part of the text,
   * if the last token does not close the first one, or if memory runs out.
   */
  bool begin(const uint8_t* text, size_t length) noexcept;

  /**
   * Returns the cursor at `offset`. The text must be the same as in `begin`, unchanged and
   * completely indexed. Allocates no memory.
   */
  Cursor seek(const uint8_t* text, uint32_t offset) noexcept;

  /**
   * Removes the entries before `cursor`, except the last of them. Returns the new position of
   * `cursor`, or null for the same reasons for which `begin` returns false. All other cursors
   * become invalid.
   */
  Cursor more(Cursor cursor) noexcept;

  Cursor first() const noexcept { return entries_.get(); }
  /** Returns the entry after the last token. It is a copy of the first entry. */
  Cursor end() const noexcept { return first() + size_; }
  /**
   * Returns the entry at which `more` must be called. If the list contains the last token, no walk
   * reaches this entry.
   */
  Cursor mark() const noexcept { return next_ == length_ ? end() + 1 : end() - kAhead; }
  bool out_of_memory() const noexcept { return out_of_memory_; }

  void release() noexcept;

  /**
   * Maximum number of entries that a walk passes or reads before it compares its cursor with the
   * mark again.
   */
  static constexpr size_t kAhead = 16;

 private:
  static constexpr uint32_t kNoRoot = UINT32_MAX;

  bool fill() noexcept;
  bool index_window() noexcept;
  simdjson::error_code index_until(size_t end) noexcept;
  bool finish() noexcept;
  bool reserve(size_t entries) noexcept;
  bool can_index(size_t length) noexcept;

  const uint8_t* text_ = nullptr;
  size_t length_ = 0;
  size_t next_ = 0;
  uint32_t root_ = kNoRoot;
  std::unique_ptr<uint32_t[]> entries_;
  size_t capacity_ = 0;
  size_t size_ = 0;
  std::unique_ptr<simdjson::internal::dom_parser_implementation> indexer_;
  size_t indexer_bytes_max_ = 0;
  bool out_of_memory_ = false;
  IndexFence fence_;
};

}  // namespace penstock

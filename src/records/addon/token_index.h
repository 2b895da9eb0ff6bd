// The offsets of the tokens of a text, indexed by simdjson's stage 1 window by window. Does not
// check the order of the tokens. If the tokens do not fit into the list, `more` drops the passed
// tokens and indexes further tokens.

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
   * if the last token does not close the first, or if memory runs out.
   */
  bool begin(const uint8_t* text, size_t length) noexcept;

  /** The text must be that of `begin`, unchanged and completely indexed. Allocates no memory. */
  Cursor seek(const uint8_t* text, uint32_t offset) noexcept;

  /**
   * Drops the entries before `cursor` except one. Returns the new position of `cursor`, or null for
   * the same reasons as `begin`. Other cursors become invalid.
   */
  Cursor more(Cursor cursor) noexcept;

  Cursor first() const noexcept { return entries_.get(); }
  /** The entry after the last token. It repeats the first token of the text. */
  Cursor end() const noexcept { return first() + size_; }
  /** The entry from which `more` must be called. Unreachable if the list has the last token. */
  Cursor mark() const noexcept { return next_ == length_ ? end() + 1 : end() - kAhead; }
  bool out_of_memory() const noexcept { return out_of_memory_; }

  void release() noexcept;

  /** Maximum number of entries that a walk passes or reads between two checks of the mark. */
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

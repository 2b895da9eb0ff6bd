// Where the tokens of a text begin: simdjson's stage 1, run over one window of the text after
// another. It must not judge their order.
//
// Memory: of a text that has more tokens than there is room for only a part is held; `more` drops
// what the walk has passed and goes on behind. So a text of nothing but brackets takes no more
// memory than one of events.

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
   * Indexes the text from its start, as far as there is room. False: stage 1 refuses a part of it;
   * it has no token; its last one does not close what the first one opens; or there is no memory.
   */
  bool begin(const uint8_t* text, size_t length) noexcept;

  /**
   * Goes to the token that begins at this offset of the text of `begin`, which is unchanged and was
   * indexed to its end. Needs no memory that it has not.
   */
  Cursor seek(const uint8_t* text, uint32_t offset) noexcept;

  /**
   * For a cursor at `mark` or past it: drops what stands more than one entry before it, and indexes
   * more. Answers the cursor's new place, or null for the reasons of `begin`. Other cursors are
   * invalid then.
   */
  Cursor more(Cursor cursor) noexcept;

  Cursor first() const noexcept { return entries_.get(); }
  /** Behind the last token that is held; there stands once more the first token of the text. */
  Cursor end() const noexcept { return first() + size_; }
  /** From here on `more` is due. Behind what a walk reaches if the text's last token is held. */
  Cursor mark() const noexcept { return next_ == length_ ? end() + 1 : end() - kAhead; }
  bool out_of_memory() const noexcept { return out_of_memory_; }

  void release() noexcept;

  /** Entries that a walk may pass or look at between two looks at the mark. */
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
  /** Where the next window begins. */
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

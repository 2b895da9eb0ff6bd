// Validates a text by a walk over the index of simdjson's stage 1.
//
// Stage 1 has checked that the text is UTF-8, and that its strings are closed and have no raw
// control characters. Its index contains the offset of the first byte of each token. The walk
// checks the order of the tokens, and the syntax of numbers, literals and escapes.
//
// The walk has no bounds checks, because it always stops at the end of the text. The text begins
// with { or [ and ends with the matching bracket. After the last offset, the index repeats the
// first one, and an opening bracket is not valid there.
//
// The index may contain only a part of the tokens. So `held` must be called before each move to
// another member, value or container.
//
// A cursor points to an entry of the index. A function that takes the cursor of a value returns the
// cursor after the value. If the value is invalid, it returns null. After the call, the passed
// cursor must not be used.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bit_stack.h"
#include "event_scan.h"
#include "seen_names.h"
#include "token_index.h"

namespace penstock {

struct Token {
  uint32_t start;
  uint32_t end;
  TokenType type;
};

struct Key {
  const uint8_t* name;
  uint32_t length;
  bool escaped;
};

constexpr uint32_t kNotHex = 0x10000;

/**
 * Returns the value of four hexadecimal digits, or kNotHex if there is any other character. Never
 * reads past a closing quote.
 */
uint32_t four_hex_digits(const uint8_t* p) noexcept;

class Walk {
 public:
  Walk(const uint8_t* text, uint32_t length, uint32_t from, TokenIndex& index, BitStack& open,
       SeenNames& names) noexcept
      : index_(index),
        mark_(index.mark()),
        text_(text),
        length_(length),
        clear_(from),
        window_end_(from),
        line_break_(length),
        open_(open),
        names_(names) {
    names_.begin();
  }

  /** The ItemFlag bits of the values that the walk has passed. The caller clears them. */
  uint32_t flags = 0;
  /** The number of the item's containers that are open at the next value. The caller sets it. */
  uint32_t depth = 0;
  /** Returns the offset from which line breaks are replaced. It is final after look_to_end. */
  uint32_t line_breaks_from() const noexcept { return line_break_; }
  bool out_of_memory() const noexcept { return out_of_memory_ || index_.out_of_memory(); }

  void look_to_end() noexcept {
    while (window_end_ < length_) next_window(window_end_);
  }

  const uint8_t* text() const noexcept { return text_; }
  PENSTOCK_INLINE uint8_t at(Cursor cursor) const noexcept { return text_[*cursor]; }

  /** Loads more entries if necessary. Returns null if the text is invalid at these entries. */
  PENSTOCK_INLINE Cursor held(Cursor cursor) noexcept {
    return PENSTOCK_UNLIKELY(cursor >= mark_) ? next_part(cursor) : cursor;
  }

  Cursor seek(uint32_t offset) noexcept {
    const Cursor cursor = index_.seek(text_, offset);
    mark_ = index_.mark();
    return cursor;
  }

  /** Calls `member` for each member. `member` must return the cursor after the value. */
  template <typename Member>
  PENSTOCK_INLINE Cursor members(Cursor cursor, Member member) noexcept {
    ++cursor;
    if (at(cursor) == '}') return cursor + 1;
    for (;;) {
      cursor = held(cursor);
      if (PENSTOCK_UNLIKELY(cursor == nullptr || at(cursor) != '"' || at(cursor + 1) != ':'))
        return nullptr;
      Key key{};
      if (PENSTOCK_UNLIKELY(cursor[1] > clear_)) {
        const Escapes escapes = pass_escapes(cursor[1]);
        if (escapes == Escapes::kInvalid) return nullptr;
        key.escaped = escapes == Escapes::kSome;
      }
      key.name = text_ + *cursor + 1;
      key.length = string_end(cursor) - *cursor - 2;
      cursor = member(key, cursor + 2);
      if (PENSTOCK_UNLIKELY(cursor == nullptr)) return nullptr;
      const uint8_t c = at(cursor++);
      if (c == ',') continue;
      return c == '}' ? cursor : nullptr;
    }
  }

  PENSTOCK_INLINE Cursor skip(Cursor cursor) noexcept {
    switch (at(cursor)) {
      case '"':
        if (PENSTOCK_UNLIKELY(cursor[1] > clear_) && pass_escapes(cursor[1]) == Escapes::kInvalid)
          return nullptr;
        return cursor + 1;
      case '{':
      case '[': return skip_container(cursor);
      default: return scalar_end(cursor) == 0 ? nullptr : cursor + 1;
    }
  }

  /** Returns the type of a value from its first byte. So every string counts as plain. */
  PENSTOCK_INLINE TokenType type_at(Cursor cursor) const noexcept {
    switch (at(cursor)) {
      case '"': return kPlainString;
      case '{': return kObject;
      case '[': return kArray;
      case 't': return kTrue;
      case 'f': return kFalse;
      case 'n': return kNull;
      default: return kNumber;
    }
  }

  PENSTOCK_INLINE Cursor read(Cursor cursor, Token& token) noexcept {
    token.start = *cursor;
    token.type = type_at(cursor);
    if (token.type == kPlainString) {
      token.end = string_end(cursor);
      if (token.end - token.start == 2) token.type = kEmptyString;
      if (PENSTOCK_UNLIKELY(cursor[1] > clear_)) {
        const Escapes escapes = pass_escapes(cursor[1]);
        if (escapes == Escapes::kInvalid) return nullptr;
        if (escapes == Escapes::kSome) token.type = kEscapedString;
      }
      return cursor + 1;
    }
    if (token.type == kObject || token.type == kArray) {
      cursor = skip_container(cursor);
      if (cursor != nullptr) token.end = cursor[-1] + 1;
      return cursor;
    }
    token.end = scalar_end(cursor);
    return token.end == 0 ? nullptr : cursor + 1;
  }

  Cursor skip_container(Cursor cursor) noexcept;

  /** Starts the check for repeated names. Call this before the members of an object. */
  PENSTOCK_INLINE void open_names() noexcept { names_.open(); }
  PENSTOCK_INLINE void close_names() noexcept { names_.close(); }
  PENSTOCK_INLINE void note_name(const uint8_t* name, uint32_t length) noexcept {
    if (PENSTOCK_UNLIKELY(names_.is_second(text_, static_cast<uint32_t>(name - text_), length)))
      flags |= kItemDuplicateKey;
  }

 private:
  enum class Escapes { kNone, kSome, kInvalid };

  static PENSTOCK_INLINE bool is_space(uint8_t c) noexcept {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  }
  static PENSTOCK_INLINE bool is_digit(uint8_t c) noexcept {
    return static_cast<uint8_t>(c - '0') < 10;
  }

  PENSTOCK_INLINE uint32_t string_end(Cursor cursor) const noexcept {
    uint32_t end = cursor[1];
    while (PENSTOCK_UNLIKELY(text_[end - 1] != '"') && end > *cursor + 2) end--;
    return end;
  }

  PENSTOCK_INLINE bool ends_at(uint32_t end, Cursor cursor) const noexcept {
    return end == cursor[1] || is_space(text_[end]);
  }

  PENSTOCK_INLINE uint32_t literal_end(Cursor cursor, const char* word,
                                       uint32_t length) const noexcept {
    const uint32_t end = *cursor + length;
    if (cursor[1] < end || std::memcmp(text_ + *cursor, word, length) != 0) return 0;
    return ends_at(end, cursor) ? end : 0;
  }

  // Returns the end of a number or literal. For all other values, returns 0.
  PENSTOCK_INLINE uint32_t scalar_end(Cursor cursor) noexcept {
    switch (at(cursor)) {
      case 't': return literal_end(cursor, "true", 4);
      case 'f': return literal_end(cursor, "false", 5);
      case 'n': return literal_end(cursor, "null", 4);
      default: return number_end(cursor);
    }
  }

  // Returns the end of a number, or 0 if it is invalid. The loops always end, because the next
  // entry of the index is not a digit.
  PENSTOCK_INLINE uint32_t number_end(Cursor cursor) noexcept {
    const uint8_t* p = text_ + *cursor;
    if (*p == '-') p++;
    if (*p == '0') {
      p++;
    } else {
      if (!is_digit(*p)) return 0;
      do p++;
      while (is_digit(*p));
    }
    if (*p == '.') {
      p++;
      if (!is_digit(*p)) return 0;
      do p++;
      while (is_digit(*p));
    }
    if (*p == 'e' || *p == 'E') {
      p++;
      if (*p == '+' || *p == '-') p++;
      if (!is_digit(*p)) return 0;
      do p++;
      while (is_digit(*p));
    }
    const uint32_t end = static_cast<uint32_t>(p - text_);
    if (PENSTOCK_UNLIKELY(end - *cursor > kNumberDigitsMax)) note_long_number(text_ + *cursor, p);
    return ends_at(end, cursor) ? end : 0;
  }

  Cursor next_part(Cursor cursor) noexcept;
  void note_long_number(const uint8_t* begin, const uint8_t* end) noexcept;
  Escapes pass_escapes(uint32_t end) noexcept;
  uint32_t escape_end(uint32_t backslash) noexcept;
  void next_window(uint32_t from) noexcept;
  void find_backslash(uint32_t from) noexcept;
  void find_line_break(uint32_t from) noexcept;

  TokenIndex& index_;
  Cursor mark_;
  const uint8_t* const text_;
  const uint32_t length_;
  uint32_t clear_;
  uint32_t window_end_;
  uint32_t line_break_;
  bool out_of_memory_ = false;
  BitStack& open_;
  SeenNames& names_;
};

}  // namespace penstock

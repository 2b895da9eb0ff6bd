#include "json_walk.h"

#include <algorithm>

namespace penstock {
namespace {

// The size is chosen so that the walk reads these bytes while they are still in the CPU's cache.
#if !defined(PENSTOCK_WINDOW_BYTES)
#define PENSTOCK_WINDOW_BYTES (32 << 10)
#endif

constexpr uint32_t kWindowBytes = PENSTOCK_WINDOW_BYTES;

uint32_t hex_digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - uint32_t{'0'};
  const uint32_t letter = c | 0x20u;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : kNotHex;
}

}  // namespace

uint32_t four_hex_digits(const uint8_t* p) noexcept {
  uint32_t code = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t digit = hex_digit(p[i]);
    if (digit == kNotHex) return kNotHex;
    code = code << 4 | digit;
  }
  return code;
}

Cursor Walk::skip_container(Cursor cursor) noexcept {
  open_.clear();
  bool in_object = at(cursor) == '{';

opened:
  cursor = held(cursor);
  if (PENSTOCK_UNLIKELY(cursor == nullptr)) return nullptr;
  if (PENSTOCK_UNLIKELY(depth + open_.depth() >= kDepthMax)) flags |= kItemTooDeep;
  ++cursor;
  if (at(cursor) == (in_object ? '}' : ']')) goto closed;
  if (PENSTOCK_UNLIKELY(!open_.push(in_object))) {
    out_of_memory_ = true;
    return nullptr;
  }
  if (!in_object) goto value;
  names_.open();

member:
  if (PENSTOCK_UNLIKELY(at(cursor) != '"' || at(cursor + 1) != ':')) return nullptr;
  if (PENSTOCK_UNLIKELY(cursor[1] > clear_)) {
    const Escapes escapes = pass_escapes(cursor[1]);
    if (escapes == Escapes::kInvalid) return nullptr;
    if (escapes == Escapes::kSome) flags |= kItemEscapedInnerKey;
    else note_name(text_ + *cursor + 1, string_end(cursor) - *cursor - 2);
  } else {
    note_name(text_ + *cursor + 1, string_end(cursor) - *cursor - 2);
  }
  cursor += 2;

value:
  switch (at(cursor)) {
    case '"':
      if (PENSTOCK_UNLIKELY(cursor[1] > clear_) && pass_escapes(cursor[1]) == Escapes::kInvalid)
        return nullptr;
      break;
    case '{': in_object = true; goto opened;
    case '[': in_object = false; goto opened;
    default:
      if (PENSTOCK_UNLIKELY(scalar_end(cursor) == 0)) return nullptr;
  }

after_value:
  cursor = held(cursor);
  if (PENSTOCK_UNLIKELY(cursor == nullptr)) return nullptr;
  ++cursor;
  if (at(cursor) == ',') {
    ++cursor;
    if (in_object) goto member;
    goto value;
  }
  if (PENSTOCK_UNLIKELY(at(cursor) != (in_object ? '}' : ']'))) return nullptr;
  if (in_object) names_.close();
  open_.pop();

closed:
  if (open_.empty()) return cursor + 1;
  in_object = open_.top();
  goto after_value;
}

Cursor Walk::next_part(Cursor cursor) noexcept {
  cursor = index_.more(cursor);
  mark_ = index_.mark();
  return cursor;
}

Walk::Escapes Walk::pass_escapes(uint32_t end) noexcept {
  Escapes found = Escapes::kNone;
  while (clear_ < end) {
    if (clear_ == window_end_) {
      next_window(clear_);
      continue;
    }
    const uint32_t after = escape_end(clear_);
    if (after == 0) return Escapes::kInvalid;
    found = Escapes::kSome;
    if (after >= window_end_) {
      clear_ = window_end_ = after;
    } else {
      find_backslash(after);
    }
  }
  return found;
}

uint32_t Walk::escape_end(uint32_t backslash) noexcept {
  const uint8_t* p = text_ + backslash + 1;
  switch (*p) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return backslash + 2;
    case 'u': break;
    default: return 0;
  }
  const uint32_t code = four_hex_digits(p + 1);
  if (code == kNotHex) return 0;
  if (code < 0xD800 || code > 0xDFFF) {
    if (code == 0) flags |= kItemReplacedCharacter;
    return backslash + 6;
  }
  if (code < 0xDC00 && p[5] == '\\' && p[6] == 'u') {
    const uint32_t partner = four_hex_digits(p + 7);
    if (partner >= 0xDC00 && partner <= 0xDFFF) return backslash + 12;
  }
  flags |= kItemReplacedCharacter;
  return backslash + 6;
}

void Walk::note_long_number(const uint8_t* begin, const uint8_t* end) noexcept {
  if (std::count_if(begin, end, is_digit) > static_cast<std::ptrdiff_t>(kNumberDigitsMax))
    flags |= kItemLongNumber;
}

void Walk::next_window(uint32_t from) noexcept {
  window_end_ = from + std::min(kWindowBytes, length_ - from);
  if (line_break_ == length_) find_line_break(from);
  find_backslash(from);
}

void Walk::find_backslash(uint32_t from) noexcept {
  const void* found = std::memchr(text_ + from, '\\', window_end_ - from);
  clear_ = found == nullptr ? window_end_
                            : static_cast<uint32_t>(static_cast<const uint8_t*>(found) - text_);
}

void Walk::find_line_break(uint32_t from) noexcept {
  const uint8_t* begin = text_ + from;
  const size_t length = window_end_ - from;
  if (std::memchr(begin, '\n', length) == nullptr && std::memchr(begin, '\r', length) == nullptr)
    return;
  line_break_ = from;
}

}  // namespace penstock

// Compares keys by their text, because equal keys may have different escapes or different
// surrounding white space.

#include "array_keys.h"

#include "ascii_text.h"

namespace penstock {
namespace {

bool is_trimmed(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Writes the text of a key to `room`, without surrounding white space. If the token cannot be a
// key, sets `length` to kNoAsciiText.
const uint8_t* key_text(const uint8_t* text, const Token& key, uint8_t (&room)[kKeyTokenBytesMax],
                        size_t& length) {
  length = kNoAsciiText;
  const bool is_string = key.type == kPlainString || key.type == kEscapedString;
  if (!is_string || key.end - key.start > kKeyTokenBytesMax) return room;
  length = ascii_text(text + key.start + 1, key.end - key.start - 2, room, sizeof room);
  if (length == kNoAsciiText) return room;
  const uint8_t* start = room;
  while (length > 0 && is_trimmed(start[length - 1])) length--;
  for (; length > 0 && is_trimmed(*start); start++) length--;
  return start;
}

}  // namespace

// The first key is decoded only once, because it may be long and is compared with many keys.
bool ArrayKeys::has_text_of_first(const Token& key) noexcept {
  if (!first_is_read_) {
    const uint8_t* const start = key_text(text_, first_, first_text_, first_length_);
    if (first_length_ != kNoAsciiText) std::memmove(first_text_, start, first_length_);
    first_is_read_ = true;
  }
  uint8_t room[kKeyTokenBytesMax];
  size_t length;
  const uint8_t* const start = key_text(text_, key, room, length);
  return length != kNoAsciiText && length == first_length_ &&
         std::memcmp(start, first_text_, length) == 0;
}

}  // namespace penstock

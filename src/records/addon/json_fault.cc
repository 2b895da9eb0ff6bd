// Finds the first error in a text, byte by byte. The code must stay so simple that a reader can
// verify it.

#include "json_fault.h"

#include <cstring>

#include "bit_stack.h"
#include "text_repair.h"

namespace penstock {
namespace {

bool is_space(uint8_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
bool is_hex(uint8_t c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_continuation(uint8_t c) { return (c & 0xC0) == 0x80; }

// Returns the length of the valid UTF-8 sequence at `text` (Unicode 15, table 3-7), or 0 if it is
// invalid.
size_t utf8_sequence_length(const uint8_t* text, size_t left) {
  const uint8_t lead = text[0];
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (left < length) return 0;
  const uint8_t second = text[1];
  if (!is_continuation(second)) return 0;
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;
  for (size_t i = 2; i < length; i++) {
    if (!is_continuation(text[i])) return 0;
  }
  return length;
}

struct Reader {
  const uint8_t* text;
  size_t length;
  size_t at;
  Words words;

  bool ended() const { return at >= length; }
  // A NUL marks the end of the text, because no JSON token contains a NUL.
  uint8_t peek() const { return ended() ? uint8_t{0} : text[at]; }
  void skip_space() {
    while (!ended() && is_space(text[at])) at++;
  }
  bool take(uint8_t c) {
    if (peek() != c) return false;
    at++;
    return true;
  }
  bool digits() {
    if (!is_digit(peek())) return false;
    while (is_digit(peek())) at++;
    return true;
  }
  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (peek() == 'e' || peek() == 'E') {
      at++;
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    return true;
  }
  bool word(const char* letters) {
    for (; *letters != '\0'; letters++) {
      if (!take(static_cast<uint8_t>(*letters))) return false;
    }
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    while (!ended()) {
      const uint8_t c = text[at];
      if (c < 0x20) return false;
      at++;
      if (c == '"') return true;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }
  bool escape() {
    const uint8_t c = peek();
    if (c == 0 || std::strchr("\"\\/bfnrtu", c) == nullptr) return false;
    at++;
    if (c != 'u') return true;
    for (int i = 0; i < 4; i++) {
      if (!is_hex(peek())) return false;
      at++;
    }
    return true;
  }
  bool scalar() {
    if (words == Words::kNonFiniteToo) {
      const size_t word = non_finite_length(text + at, length - at);
      at += word;
      if (word > 0) return true;
    }
    switch (peek()) {
      case '"': return string();
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }
  bool key_and_colon() {
    skip_space();
    if (!string()) return false;
    skip_space();
    return take(':');
  }
};

}  // namespace

size_t find_utf8_fault(const uint8_t* text, size_t length) noexcept {
  size_t at = 0;
  while (at < length) {
    uint64_t eight;
    if (length - at >= sizeof eight) {
      std::memcpy(&eight, text + at, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t step = utf8_sequence_length(text + at, length - at);
    if (step == 0) return at;
    at += step;
  }
  return kNoFault;
}

size_t find_json_fault(const uint8_t* text, size_t length, Words words) noexcept {
  Reader in{text, length, 0, words};
  BitStack is_object;
  for (;;) {
    // A value must begin here.
    in.skip_space();
    const uint8_t c = in.peek();
    if (c == '{' || c == '[') {
      in.at++;
      in.skip_space();
      if (!in.take(c == '{' ? '}' : ']')) {
        if (c == '{' && !in.key_and_colon()) return in.at;
        if (!is_object.push(c == '{')) return kFaultOutOfMemory;
        continue;
      }
    } else if (!in.scalar()) {
      return in.at;
    }
    // A value has just ended.
    for (;;) {
      in.skip_space();
      if (is_object.empty()) return in.ended() ? kNoFault : in.at;
      if (in.take(',')) {
        if (is_object.top() && !in.key_and_colon()) return in.at;
        break;
      }
      if (!in.take(is_object.top() ? '}' : ']')) return in.at;
      is_object.pop();
    }
  }
}

}  // namespace penstock

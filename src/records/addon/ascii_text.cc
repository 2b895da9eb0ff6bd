#include "ascii_text.h"

#include "json_walk.h"

namespace penstock {
namespace {

uint32_t simple_escape(uint8_t letter) {
  switch (letter) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return letter;
  }
}

}  // namespace

size_t ascii_text(const uint8_t* from, size_t length, uint8_t* to, size_t room) noexcept {
  size_t written = 0;
  for (size_t at = 0; at < length;) {
    uint32_t c = from[at++];
    if (c == '\\') {
      const uint8_t letter = from[at++];
      c = letter == 'u' ? four_hex_digits(from + at) : simple_escape(letter);
      if (letter == 'u') at += 4;
    }
    if (c > 0x7F || written == room) return kNoAsciiText;
    to[written++] = static_cast<uint8_t>(c);
  }
  return written;
}

}  // namespace penstock

// Reads the tokens of a text that may or may not be JSON, for the oracles. It must share nothing
// with the addon's core.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

struct Lexed {
  /**
   * The text without what simdjson's DOM rejects and JSON.parse accepts: numbers of more than 15
   * bytes or with an exponent are 0 and spaces, lone surrogates are \u0041. As long as the text,
   * and valid JSON exactly when the text is.
   */
  std::string tame;
  /**
   * Offsets of escaped U+0000 and of escaped surrogates without a partner, ascending.
   */
  std::vector<size_t> replaced;
  /** The maximum number of containers that are open at a time. */
  size_t depth = 0;
  /** The maximum number of digits of a number. */
  size_t digits = 0;
  /** The brackets that would close everything open at the end, innermost first. */
  std::string closers;
};

Lexed lex(const uint8_t* text, size_t length);

}  // namespace fuzz

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
   * The text without what simdjson's DOM refuses and JSON.parse takes: numbers of more than 15
   * bytes or with an exponent are 0 and spaces, lone surrogates are \u0041. As long as the text,
   * and valid JSON exactly when the text is.
   */
  std::string tame;
  /**
   * Offsets of the escapes that stand for U+0000 or for a surrogate without a partner, ascending.
   */
  std::vector<size_t> replaced;
  /** The most containers that are open at a time. */
  size_t depth = 0;
  /** The most digits that a number has. */
  size_t digits = 0;
  /** The brackets that would close what is open at the end, innermost first. */
  std::string closers;
};

Lexed lex(const uint8_t* text, size_t length);

}  // namespace fuzz

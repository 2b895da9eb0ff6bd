// Checks with simdjson's DOM whether a text is JSON, and removes the differences between it and
// JSON.parse, one by one.

#include <cstring>

#include "check.h"
#include "lexer.h"
#include "oracle.h"
#include "simdjson.h"

namespace fuzz {
namespace {

simdjson::error_code dom_error(const uint8_t* text, size_t length) {
  static simdjson::dom::parser parser;
  static size_t depth = 0;
  if (depth <= length) {
    depth = 2 * length + 1024;
    check(parser.allocate(depth, depth) == simdjson::SUCCESS, "the DOM has the memory it asks for");
  }
  std::vector<uint8_t> padded(length + simdjson::SIMDJSON_PADDING);
  if (length > 0) std::memcpy(padded.data(), text, length);
  return parser.parse(padded.data(), length, false).error();
}

}  // namespace

bool is_json(const uint8_t* text, size_t length) {
  if (length >= 3 && std::memcmp(text, "\xEF\xBB\xBF", 3) == 0) return false;
  const auto error = dom_error(text, length);
  // The DOM may report a number or a string before an error of another kind, so it is asked again.
  const bool may_be_tamed = error == simdjson::NUMBER_ERROR || error == simdjson::BIGINT_ERROR ||
                            error == simdjson::STRING_ERROR;
  if (!may_be_tamed) return error == simdjson::SUCCESS;
  const Lexed lexed = lex(text, length);
  return dom_error(reinterpret_cast<const uint8_t*>(lexed.tame.data()), length) ==
         simdjson::SUCCESS;
}

}  // namespace fuzz

// A text begins JSON if one of a few endings of its last token, and the open brackets, make it
// JSON. So the byte at a reported offset is invalid exactly when the text begins JSON up to it, and
// no longer does with it.

#include "fault_oracle.h"

#include <string>

#include "lexer.h"
#include "oracle.h"
#include "simdjson.h"

namespace fuzz {
namespace {

constexpr const char* kEndings[] = {
    "",      "0",      "\"",    ":0",    "\":0",   "\"\":0",  "n\"",      "0\"", "00\"",
    "000\"", "0000\"", "n\":0", "0\":0", "00\":0", "000\":0", "0000\":0", "rue", "ue",
    "e",     "alse",   "lse",   "se",    "ull",    "ll",      "l"};

}  // namespace

bool is_utf8_fault(const uint8_t* text, size_t length, size_t offset) {
  const char* const bytes = reinterpret_cast<const char*>(text);
  if (offset >= length || !simdjson::validate_utf8(bytes, offset)) return false;
  for (size_t size = 1; size <= 4 && offset + size <= length; size++) {
    if (simdjson::validate_utf8(bytes + offset, size)) return false;
  }
  return true;
}

bool begins_json(const uint8_t* text, size_t length) {
  const std::string begun(reinterpret_cast<const char*>(text), length);
  const std::string closers = lex(text, length).closers;
  for (const char* ending : kEndings) {
    const std::string completed = begun + ending + closers;
    if (is_json(reinterpret_cast<const uint8_t*>(completed.data()), completed.size())) return true;
  }
  return false;
}

}  // namespace fuzz

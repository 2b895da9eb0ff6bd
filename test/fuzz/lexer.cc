// Reads tokens one byte after another. After the first invalid byte of a text, any reading is
// correct: that byte, which is never changed, makes the text invalid.

#include "lexer.h"

#include <algorithm>
#include <cctype>

namespace fuzz {
namespace {

constexpr size_t kNumberBytesAlwaysTaken = 15;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/** End of the JSON number that starts at `at`, or `at` if there is no number. */
size_t number_end(const std::string& text, size_t at) {
  size_t end = at;
  const auto digits = [&] {
    const size_t start = end;
    while (end < text.size() && is_digit(text[end])) end++;
    return end > start;
  };
  const auto take = [&](const char* any_of) {
    if (end == text.size() || std::string(any_of).find(text[end]) == std::string::npos)
      return false;
    end++;
    return true;
  };
  take("-");
  if (!take("0") && !digits()) return at;
  if (take(".") && !digits()) return at;
  if (take("eE")) {
    take("+-");
    if (!digits()) return at;
  }
  const bool ends =
      end == text.size() || std::string(" \t\n\r,]}").find(text[end]) != std::string::npos;
  return ends ? end : at;
}

void tame_number(std::string& text, size_t start, size_t end) {
  const size_t exponent = std::min(text.find_first_of("eE", start), end);
  if (exponent == end && end - start <= kNumberBytesAlwaysTaken) return;
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(start),
            text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  text[start] = '0';
}

/** The code unit of the \uXXXX at `at`, or -1. */
int unit_at(const std::string& text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  const std::string digits = text.substr(at + 2, 4);
  const bool hex = std::all_of(digits.begin(), digits.end(),
                               [](unsigned char c) { return std::isxdigit(c) != 0; });
  return hex ? std::stoi(digits, nullptr, 16) : -1;
}

bool is_high(int unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low(int unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

/** End of the escape at `at`; a lone surrogate is recorded and replaced. */
size_t pass_escape(Lexed& lexed, size_t at) {
  const int unit = unit_at(lexed.tame, at);
  if (unit < 0) return at + 2;
  if (unit == 0) lexed.replaced.push_back(at);
  if (is_high(unit) && is_low(unit_at(lexed.tame, at + 6))) return at + 12;
  if (is_high(unit) || is_low(unit)) {
    lexed.replaced.push_back(at);
    lexed.tame.replace(at, 6, "\\u0041");
  }
  return at + 6;
}

}  // namespace

Lexed lex(const uint8_t* text, size_t length) {
  Lexed lexed;
  lexed.tame.assign(reinterpret_cast<const char*>(text), length);
  std::string& tame = lexed.tame;
  std::string open;
  bool in_string = false;
  for (size_t at = 0; at < length;) {
    const char c = tame[at];
    if (in_string && c == '\\') {
      at = pass_escape(lexed, at);
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (!in_string) {
      if (c == '{' || c == '[') open.push_back(c == '{' ? '}' : ']');
      lexed.depth = std::max(lexed.depth, open.size());
      if ((c == '}' || c == ']') && !open.empty()) open.pop_back();
      const bool may_begin =
          at == 0 || std::string(" \t\n\r,:[").find(tame[at - 1]) != std::string::npos;
      const size_t end = may_begin ? number_end(tame, at) : at;
      if (end > at) {
        const auto digits =
            std::count_if(tame.begin() + static_cast<std::ptrdiff_t>(at),
                          tame.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
        lexed.digits = std::max(lexed.digits, static_cast<size_t>(digits));
        tame_number(tame, at, end);
        at = end;
        continue;
      }
    }
    at++;
  }
  lexed.closers.assign(open.rbegin(), open.rend());
  return lexed;
}

}  // namespace fuzz

#include "schema_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "same_bytes.h"

namespace penstock {
namespace {

constexpr uint32_t kSlotBitsMax = 20;

double double_at(const uint32_t* words) noexcept {
  double value = 0;
  std::memcpy(&value, words, sizeof value);
  return value;
}

/** The value of a number is a double from `low` to `high`. */
struct NumberRange {
  double low;
  double high;
  bool has_fraction;
};

/** Maximum digits of an integer that is a double for sure. */
constexpr std::ptrdiff_t kExactDigits = 15;
constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kPowerMax = 22;

/** Adds digits to a number. Returns the first byte that is none, or the end. */
const uint8_t* take_digits(const uint8_t* at, const uint8_t* end, uint64_t& number) noexcept {
  for (; at < end; at++) {
    const uint32_t digit = uint32_t{*at} - '0';
    if (digit > 9) break;
    number = 10 * number + digit;
  }
  return at;
}

/** Reads the first 15 digits. The others only widen the range. */
bool read_long_number(const uint8_t* at, const uint8_t* end, NumberRange& range) noexcept {
  uint64_t number = 0;
  int count = 0;
  int power = 0;
  for (; at < end; at++) {
    if (*at == '.') {
      range.has_fraction = true;
      continue;
    }
    const uint32_t digit = uint32_t{*at} - '0';
    if (digit > 9) return false;
    if (count < kExactDigits) {
      number = 10 * number + digit;
      count += number != 0;
      power -= range.has_fraction;
    } else {
      power += !range.has_fraction;
    }
    if (power < -kPowerMax || power > kPowerMax) return false;
  }
  const double scale = kPowersOfTen[std::abs(power)];
  const auto low = static_cast<double>(number);
  const auto high = static_cast<double>(number + 1);
  range.low = power < 0 ? low / scale : low * scale;
  range.high = power < 0 ? high / scale : high * scale;
  return true;
}

/**
 * Reads a number without an exponent. The product or quotient of two exact numbers is the nearest
 * double.
 */
bool read_number(const SentValue& value, NumberRange& range) noexcept {
  const uint8_t* const end = value.bytes + value.length;
  const bool is_negative = value.bytes[0] == '-';
  const uint8_t* const first = value.bytes + is_negative;
  range.has_fraction = false;
  // 15 digits and a point, or an integer of 16 digits, for which the cast returns the nearest
  // double.
  if (end - first <= kExactDigits + 1) {
    uint64_t number = 0;
    const uint8_t* at = take_digits(first, end, number);
    range.low = 0;
    if (at == end) {
      range.low = static_cast<double>(number);
    } else {
      if (*at != '.') return false;
      range.has_fraction = true;
      const uint8_t* const decimals = at + 1;
      at = take_digits(decimals, end, number);
      if (at != end) return false;
      range.low = static_cast<double>(number) / kPowersOfTen[end - decimals];
    }
    range.high = range.low;
  } else if (!read_long_number(first, end, range)) {
    return false;
  }
  if (is_negative) {
    const double low = range.low;
    range.low = -range.high;
    range.high = -low;
  }
  return true;
}

size_t characters_in(const uint8_t* text, size_t bytes) noexcept {
  size_t count = 0;
  for (size_t at = 0; at < bytes; at++) count += (text[at] & 0xC0) != 0x80;
  return count;
}

}  // namespace

constexpr uint32_t SchemaJudge::kNoSlots[];

void SchemaJudge::open(uint32_t schema) noexcept {
  const uint32_t* const head = head_at(schema);
  slots_ = nullptr;
  if (head != nullptr && head[kSchemaSlotBits] <= kSlotBitsMax) {
    other_ = head[kSchemaOther];
    missing_ = head[kSchemaRequired];
    slot_bits_ = head[kSchemaSlotBits];
    slot_mask_ = (uint32_t{1} << slot_bits_) - 1;
    slots_ = words_at(size_t{schema} + kSchemaWords, size_t{kPropertyWords} << slot_bits_);
  }
  is_sure_ = slots_ != nullptr;
  if (is_sure_) return;
  slots_ = kNoSlots;
  slot_bits_ = slot_mask_ = 0;
  other_ = kNoOther;
}

bool SchemaJudge::passes(const uint32_t* check, const SentValue& value) const noexcept {
  if (value.type == kNumber) return passes_number(check[kValueNumber], value);
  if (value.type != kPlainString && value.type != kEmptyString) return false;
  return value.length >= 2 && passes_text(check[kValueText], value.bytes + 1, value.length - 2);
}

bool SchemaJudge::passes_number(uint32_t offset, const SentValue& value) const noexcept {
  const uint32_t* const words = head_at(offset);
  NumberRange range;
  if (words == nullptr || !read_number(value, range)) return false;
  const auto [low, high, has_fraction] = range;
  if (words[kNumberInteger] != 0 && has_fraction && (low != high || std::floor(low) != low))
    return false;
  // Every comparison with NaN is false.
  if (low < double_at(words + kNumberMinimum) || high > double_at(words + kNumberMaximum) ||
      low <= double_at(words + kNumberAbove) || high >= double_at(words + kNumberBelow))
    return false;
  const size_t count = words[kNumberValues];
  if (count == 0) return true;
  const uint32_t* const values = words_at(size_t{offset} + kNumberWords, 2 * count);
  if (values == nullptr || low != high) return false;
  size_t first = 0;
  for (size_t end = count; first < end;) {
    const size_t middle = first + (end - first) / 2;
    if (double_at(values + 2 * middle) < low) first = middle + 1;
    else end = middle;
  }
  return first < count && double_at(values + 2 * first) == low;
}

bool SchemaJudge::passes_text(uint32_t offset, const uint8_t* text, size_t bytes) const noexcept {
  const uint32_t* const words = head_at(offset);
  if (words == nullptr || bytes > words[kTextBytesMax]) return false;
  const uint32_t min = words[kTextCharactersMin];
  const uint32_t max = words[kTextCharactersMax];
  // A character has at most four bytes.
  if (bytes > max || bytes / 4 < min) {
    const size_t characters = characters_in(text, bytes);
    if (characters > max || characters < min) return false;
  }
  const size_t span_words = size_t{words[kTextSpans]} * kSpanWords;
  const size_t step_words = size_t{words[kTextSteps]} * kStepWords;
  const uint32_t* const spans = words_at(size_t{offset} + kTextWords, span_words + step_words);
  if (spans == nullptr) return false;
  if (span_words != 0 && !is_one_of(spans, words[kTextSpans], text, bytes)) return false;
  return matches(spans + span_words, words[kTextSteps], words[kTextHasEnd] != 0, text, bytes);
}

bool SchemaJudge::is_one_of(const uint32_t* spans, size_t count, const uint8_t* text,
                            size_t bytes) const noexcept {
  for (size_t first = 0, end = count; first < end;) {
    const size_t middle = first + (end - first) / 2;
    const uint32_t* const span = spans + middle * kSpanWords;
    const size_t length = span[kSpanBytes];
    if (length == bytes) {
      const uint8_t* const one = text_at(span);
      if (one == nullptr) return false;
      if (same_bytes(one, text, length)) return true;
      if (std::memcmp(one, text, length) < 0) first = middle + 1;
      else end = middle;
    } else if (length < bytes) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return false;
}

bool SchemaJudge::matches(const uint32_t* steps, size_t count, bool has_end, const uint8_t* text,
                          size_t bytes) const noexcept {
  size_t at = 0;
  for (size_t index = 0; index < count; index++) {
    const uint32_t* const step = steps + index * kStepWords;
    const uint32_t* const span = step + kStepText;
    const size_t length = span[kSpanBytes];
    const uint8_t* const first_text = text_at(span);
    if (first_text == nullptr || length > bytes - at || !same_bytes(first_text, text + at, length))
      return false;
    at += length;
    const uint32_t* const set = step + kStepSet;
    const uint32_t max = step[kStepMax];
    const uint32_t others = step[kStepOthers];
    uint32_t characters = 0;
    for (; at < bytes; at++) {
      const uint8_t c = text[at];
      if ((c & 0xC0) == 0x80 && others == kAllOthers) continue;
      if (characters == max) break;
      if (c <= 0x7F) {
        if ((set[c / 32] >> c % 32 & 1) == 0) break;
      } else {
        if (others == kNoOthers) break;
        if (others != kAllOthers) return false;
      }
      characters++;
    }
    if (characters < step[kStepMin]) return false;
  }
  return !has_end || at == bytes;
}

}  // namespace penstock

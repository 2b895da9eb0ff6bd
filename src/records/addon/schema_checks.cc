#include "schema_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

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
constexpr int kExactDigits = 15;
constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kPowerMax = 22;

/**
 * Reads a number without an exponent. The digits after the first 15 only widen the range. The
 * product or quotient of two exact numbers is the nearest double.
 */
bool read_number(const SentValue& value, NumberRange& range) noexcept {
  const uint8_t* at = value.bytes;
  const uint8_t* const end = at + value.length;
  const bool is_negative = *at == '-';
  if (is_negative) at++;
  uint64_t digits = 0;
  int digit_count = 0;
  int power = 0;
  bool is_exact = true;
  range.has_fraction = false;
  for (; at < end; at++) {
    if (*at == '.') {
      range.has_fraction = true;
      continue;
    }
    const uint32_t digit = uint32_t{*at} - '0';
    if (digit > 9) return false;
    if (digit_count < kExactDigits) {
      digits = 10 * digits + digit;
      digit_count += digits != 0;
      power -= range.has_fraction;
    } else {
      is_exact = false;
      power += !range.has_fraction;
    }
    if (power < -kPowerMax || power > kPowerMax) return false;
  }
  const double scale = kPowersOfTen[std::abs(power)];
  const auto scaled = [power, scale](uint64_t number) {
    return power < 0 ? static_cast<double>(number) / scale : static_cast<double>(number) * scale;
  };
  range.low = scaled(digits);
  range.high = is_exact ? range.low : scaled(digits + 1);
  if (is_negative) {
    std::swap(range.low, range.high);
    range.low = -range.low;
    range.high = -range.high;
  }
  return true;
}

size_t characters_in(const uint8_t* text, size_t bytes) noexcept {
  size_t count = 0;
  for (size_t at = 0; at < bytes; at++) count += (text[at] & 0xC0) != 0x80;
  return count;
}

}  // namespace

uint32_t property_slot(uint32_t path, uint32_t slot_bits) noexcept {
  return slot_bits == 0 ? 0 : path * 0x9E3779B1 >> (32 - slot_bits);
}

const uint32_t* SchemaJudge::words_at(size_t offset, size_t count) const noexcept {
  return offset != 0 && offset <= length_ && count <= length_ - offset ? words_ + offset : nullptr;
}

void SchemaJudge::open(uint32_t schema) noexcept {
  const uint32_t* const head = words_at(schema, kSchemaWords);
  is_sure_ = head != nullptr && head[kSchemaSlotBits] <= kSlotBitsMax;
  other_ = is_sure_ ? head[kSchemaOther] : kNoOther;
  missing_ = is_sure_ ? head[kSchemaRequired] : 0;
  slot_bits_ = is_sure_ ? head[kSchemaSlotBits] : 0;
  const size_t words = size_t{kPropertyWords} << slot_bits_;
  slots_ = is_sure_ ? words_at(size_t{schema} + kSchemaWords, words) : nullptr;
  is_sure_ = slots_ != nullptr;
}

const uint32_t* SchemaJudge::slot_of(uint32_t path) const noexcept {
  if (slots_ == nullptr || path == 0) return nullptr;
  const size_t count = size_t{1} << slot_bits_;
  size_t slot = property_slot(path, slot_bits_);
  for (size_t probes = 0; probes < count; probes++, slot = (slot + 1) & (count - 1)) {
    const uint32_t* const words = slots_ + slot * kPropertyWords;
    if (words[kPropertyPath] == path) return words;
    if (words[kPropertyPath] == 0) return nullptr;
  }
  return nullptr;
}

bool SchemaJudge::take(uint32_t path, bool has_dollar, const SentValue& value) noexcept {
  const uint32_t* const slot = slot_of(path);
  bool is_sure = false;
  if (slot != nullptr) {
    missing_ -= slot[kPropertyRequired];
    is_sure = passes(slot[kPropertyValue], value);
  } else {
    is_sure = other_ == kAnyOther || has_dollar || passes(other_, value);
  }
  is_sure_ = is_sure_ && is_sure;
  return is_sure;
}

bool SchemaJudge::passes(uint32_t check, const SentValue& value) const noexcept {
  const uint32_t* const words = words_at(check, kValueWords);
  if (words == nullptr) return false;
  if ((words[kValueTypes] >> value.type & 1) != 0) return true;
  switch (value.type) {
    case kNumber: return passes_number(words[kValueNumber], value);
    case kPlainString:
    case kEmptyString:
      return value.length >= 2 &&
             passes_text(words[kValueText], value.bytes + 1, value.length - 2);
    default: return false;
  }
}

bool SchemaJudge::passes_number(uint32_t check, const SentValue& value) const noexcept {
  const uint32_t* const words = words_at(check, kNumberWords);
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
  const uint32_t* const values = words_at(size_t{check} + kNumberWords, 2 * count);
  if (values == nullptr || low != high) return false;
  size_t first = 0;
  for (size_t end = count; first < end;) {
    const size_t middle = first + (end - first) / 2;
    if (double_at(values + 2 * middle) < low) first = middle + 1;
    else end = middle;
  }
  return first < count && double_at(values + 2 * first) == low;
}

bool SchemaJudge::passes_text(uint32_t check, const uint8_t* text, size_t bytes) const noexcept {
  const uint32_t* const words = words_at(check, kTextWords);
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
  const uint32_t* const spans = words_at(size_t{check} + kTextWords, span_words + step_words);
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
      const uint32_t* const words =
          words_at(span[kSpanStart], (length + sizeof(uint32_t) - 1) / sizeof(uint32_t));
      const int order = words == nullptr ? -1 : std::memcmp(words, text, length);
      if (order == 0) return true;
      if (order < 0) first = middle + 1;
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
    const size_t length = step[kStepText + kSpanBytes];
    const uint32_t* const words =
        words_at(step[kStepText + kSpanStart], (length + sizeof(uint32_t) - 1) / sizeof(uint32_t));
    if (words == nullptr || length > bytes - at || std::memcmp(words, text + at, length) != 0)
      return false;
    at += length;
    const size_t first = at;
    const size_t last = std::min(bytes, at + step[kStepMax]);
    const uint32_t* const set = step + kStepSet;
    for (; at < last; at++) {
      const uint8_t c = text[at];
      // The set has no other characters than those of ASCII.
      if (c > 0x7F) return false;
      if ((set[c / 32] >> c % 32 & 1) == 0) break;
    }
    if (at - first < step[kStepMin]) return false;
  }
  return !has_end || at == bytes;
}

}  // namespace penstock

// Decides from its bytes whether a property passes the schema of its event. Independent of Node.
// The result is "sure" or "not sure": then JavaScript decides. `../schema-checks.ts` writes the
// checks and documents them, and a test checks that both files agree.
//
// The checks are not trusted: what leads out of their words is not sure. The time for a value is
// linear in its bytes and in the steps of a pattern.

#pragma once

#include "event_scan.h"

namespace penstock {

/** The words of a schema. The slots of its properties follow, a hash table by their paths. */
enum SchemaWord : uint32_t {
  /** Number of required properties. */
  kSchemaRequired = 0,
  /** The check of other properties, kAnyOther or kNoOther. */
  kSchemaOther = 1,
  /** The binary logarithm of the number of slots. At least one slot is free. */
  kSchemaSlotBits = 2,
  kSchemaWords = 3,
};

enum OtherProperties : uint32_t {
  kAnyOther = 0,
  kNoOther = UINT32_MAX,
};

enum PropertySlot : uint32_t {
  /** 0 in a free slot. */
  kPropertyPath = 0,
  /** 1 if the property is required. */
  kPropertyRequired = 1,
  /** The check of the value, or 0 if no value passes for sure. */
  kPropertyValue = 2,
  kPropertyWords = 3,
};

enum ValueWord : uint32_t {
  /** A bit for each TokenType of which every value passes. */
  kValueTypes = 0,
  /** The check of numbers, or 0 if none passes for sure. */
  kValueNumber = 1,
  /** The check of strings without escapes, or 0 if none passes for sure. */
  kValueText = 2,
  kValueWords = 3,
};

/** A bound is a double in two words, or NaN. Ascending doubles follow, if only these pass. */
enum NumberWord : uint32_t {
  kNumberInteger = 0,
  kNumberMinimum = 1,
  kNumberMaximum = 3,
  kNumberAbove = 5,
  kNumberBelow = 7,
  kNumberValues = 9,
  kNumberWords = 10,
};

/** The spans of texts follow, if only these pass, and then the steps of a pattern. */
enum TextWord : uint32_t {
  kTextCharactersMin = 0,
  kTextCharactersMax = 1,
  kTextBytesMax = 2,
  /** Number of texts, by ascending length and then bytes. */
  kTextSpans = 3,
  kTextSteps = 4,
  /** 1 if the text ends after the last step. */
  kTextHasEnd = 5,
  kTextWords = 6,
};

/** The offset of the first word of a text in UTF-8, and its number of bytes. */
enum TextSpan : uint32_t {
  kSpanStart = 0,
  kSpanBytes = 1,
  kSpanWords = 2,
};

/** Bytes that must follow, and then characters of a set. */
enum PatternStep : uint32_t {
  kStepText = 0,
  /** A bit for each ASCII character. */
  kStepSet = 2,
  /** Numbers of characters. */
  kStepMin = 6,
  kStepMax = 7,
  /** A value of OtherCharacters. */
  kStepOthers = 8,
  kStepWords = 9,
};

/** The characters of a set beyond ASCII. */
enum OtherCharacters : uint32_t {
  kNoOthers = 0,
  kAllOthers = 1,
  kSomeOthers = 2,
};

/** Words after the checks, so that one comparison shows whether the first words of a check exist.
 */
inline constexpr uint32_t kCheckPadding = 10;

struct SentValue {
  const uint8_t* bytes;
  size_t length;
  TokenType type;
};

/** Returns the first slot of a path. `schema-checks.ts` has the same function. */
inline uint32_t property_slot(uint32_t path, uint32_t slot_bits) noexcept {
  return slot_bits == 0 ? 0 : path * 0x9E3779B1 >> (32 - slot_bits);
}

/** Judges the properties of one event after another. */
class SchemaJudge {
 public:
  SchemaJudge(const uint32_t* words, size_t length) noexcept
      : words_(words),
        length_(length),
        heads_(length > kCheckPadding ? static_cast<uint32_t>(length - kCheckPadding) : 0) {}

  /** Begins with an event. `schema` is the offset of its schema. */
  void open(uint32_t schema) noexcept;

  /** Whether properties that the schema does not name are judged. */
  bool reads_others() const noexcept { return other_ != kAnyOther; }

  /** Returns whether a property passes for sure. The path 0 is that of no name in the schema. */
  bool take(uint32_t path, bool has_dollar, const SentValue& value) noexcept {
    uint32_t check = other_;
    const uint32_t* const slot = slot_of(path);
    if (slot != nullptr) {
      missing_ -= slot[kPropertyRequired];
      check = slot[kPropertyValue];
    } else if (other_ == kAnyOther || has_dollar) {
      return true;
    }
    const uint32_t* const words = head_at(check);
    const bool is_sure =
        words != nullptr && ((words[kValueTypes] >> value.type & 1) != 0 || passes(words, value));
    is_sure_ = is_sure_ && is_sure;
    return is_sure;
  }

  /** Returns whether all properties have passed and no required one is missing. */
  bool is_sure() const noexcept { return is_sure_ && missing_ == 0; }

 private:
  const uint32_t* slot_of(uint32_t path) const noexcept {
    if (path == 0) return nullptr;
    uint32_t slot = property_slot(path, slot_bits_);
    for (uint32_t probes = 0; probes <= slot_mask_; probes++, slot = (slot + 1) & slot_mask_) {
      const uint32_t* const words = slots_ + size_t{slot} * kPropertyWords;
      if (words[kPropertyPath] == path) return words;
      if (words[kPropertyPath] == 0) return nullptr;
    }
    return nullptr;
  }

  /** Returns the first words of a check, or null. */
  const uint32_t* head_at(uint32_t offset) const noexcept {
    return offset - 1 < heads_ ? words_ + offset : nullptr;
  }
  /** Returns words that follow the first ones, or null. */
  const uint32_t* words_at(size_t offset, size_t count) const noexcept {
    return offset <= length_ && count <= length_ - offset ? words_ + offset : nullptr;
  }
  const uint8_t* text_at(const uint32_t* span) const noexcept {
    const size_t count = (size_t{span[kSpanBytes]} + sizeof *span - 1) / sizeof *span;
    return reinterpret_cast<const uint8_t*>(words_at(span[kSpanStart], count));
  }
  bool passes(const uint32_t* check, const SentValue& value) const noexcept;
  bool passes_number(uint32_t offset, const SentValue& value) const noexcept;
  bool passes_text(uint32_t offset, const uint8_t* text, size_t bytes) const noexcept;
  bool is_one_of(const uint32_t* spans, size_t count, const uint8_t* text,
                 size_t bytes) const noexcept;
  bool matches(const uint32_t* steps, size_t count, bool has_end, const uint8_t* text,
               size_t bytes) const noexcept;

  const uint32_t* const words_;
  const size_t length_;
  const uint32_t heads_;
  const uint32_t* slots_ = kNoSlots;
  uint32_t slot_bits_ = 0;
  uint32_t slot_mask_ = 0;
  uint32_t other_ = kAnyOther;
  uint32_t missing_ = 0;
  bool is_sure_ = false;

  static constexpr uint32_t kNoSlots[kPropertyWords] = {};
};

}  // namespace penstock

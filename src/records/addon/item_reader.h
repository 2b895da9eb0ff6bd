#pragma once

#include "event_names.h"

namespace penstock {

PENSTOCK_INLINE void set_span(uint32_t* words, const Token& token) {
  words[0] = token.start;
  words[1] = token.end;
}

PENSTOCK_INLINE TokenType type_in(uint64_t types, uint32_t place) {
  return static_cast<TokenType>(types >> 4 * place & 15);
}

PENSTOCK_INLINE void set_type(uint32_t& types, uint32_t place, TokenType type) {
  types = (types & ~(15u << 4 * place)) | static_cast<uint32_t>(type) << 4 * place;
}

PENSTOCK_INLINE bool is_nothing(TokenType type) { return type == kAbsent || type == kNull; }

struct RowPlace {
  uint32_t* row;
  uint32_t* extra;
};

class ItemReader {
 public:
  ItemReader(Walk& walk, RowPlace place, bool reads_key)
      : walk_(walk), row_(place.row), extra_(place.extra), reads_key_(reads_key) {
    std::memset(row_, 0, kRowWords * sizeof *row_);
  }

  /** `walk` is a parameter, so that the compiler does not load it again for each member. */
  PENSTOCK_INLINE Cursor member(Walk& walk, const Key& key, Cursor value) {
    if (PENSTOCK_UNLIKELY(key.escaped)) {
      note_escaped_key();
      return escaped_member(key, value);
    }
    const uint32_t name = item_name_of(key);
    if (name == kNoName) return walk.skip(value);
    return name < kOtherDistinctId ? field_value(walk, name, value) : other_value(name, value);
  }

  void note_escaped_key() { flags_ |= kItemEscapedKey; }

  Cursor key_value(uint32_t place, Cursor value);
  /**
   * Returns the first key that is not empty among the first `places` values of KeyPlace. If there
   * is none, returns kAbsent.
   */
  Token key(uint32_t places) const;

  PENSTOCK_INLINE void finish(const Token& item) {
    const uint64_t types = property_types_;
    const uint32_t flags = flags_ | properties_flags_ | walk_.flags;
    set_span(row_ + kItemStart, item);
    row_[kPropertyTypes] = static_cast<uint32_t>(types);
    const auto item_type = static_cast<uint32_t>(item.type);
    row_[kMoreTypes] = item_type << kItemTypeShift | flags << kItemFlagsShift;
    const TokenType id_type = type_in(types, kPropertyDistinctId);
    if (id_type != kAbsent) put_field(kPropertiesDistinctId, property_distinct_ids_[0], id_type);
    if (((types & kRareProperties) | extra_types_ | other_distinct_id_type_) != 0)
      finish_rare_parts();
  }

 private:
  static constexpr uint64_t kRareProperties =
      uint64_t{15} << 4 * kPropertySet | uint64_t{15} << 4 * kPropertySetOnce |
      uint64_t{15} << 4 * kPropertyUnset | uint64_t{15} << 4 * kPropertyOtherDistinctId;

  PENSTOCK_INLINE void put_field(uint32_t field, const Token& token, TokenType type) {
    set_span(row_ + kFirstFieldStart + 2 * field, token);
    set_type(row_[kFieldTypes], field, type);
  }

  PENSTOCK_INLINE Cursor field_value(Walk& walk, uint32_t field, Cursor value) {
    Token token{};
    Cursor after;
    if (field == kProperties && walk.at(value) == '{') {
      const uint32_t start = *value;
      after = properties_value(value);
      if (after == nullptr) return nullptr;
      token = {start, after[-1] + 1, kObject};
    } else {
      if (field == kProperties) forget_properties();
      after = walk.read(value, token);
    }
    put_field(field, token, token.type);
    return after;
  }

  void forget_properties() {
    property_types_ = 0;
    properties_flags_ = 0;
    set_type(key_types_, kPropertiesToken, kAbsent);
  }

  Cursor other_value(uint32_t name, Cursor value);
  Cursor escaped_member(const Key& key, Cursor value);
  Cursor escaped_properties(Cursor value);
  Cursor escaped_property(const Key& key, Cursor value);
  Cursor properties_value(Cursor value);
  void keep_property(uint32_t property, const Token& token);
  void finish_rare_parts();

  Walk& walk_;
  uint32_t* const row_;
  uint32_t* const extra_;
  const bool reads_key_;
  uint32_t flags_ = 0;
  uint32_t extra_types_ = 0;
  uint32_t key_types_ = 0;
  TokenType other_distinct_id_type_ = kAbsent;
  uint32_t properties_flags_ = 0;
  uint64_t property_types_ = 0;
  // The span of a token is valid only if its type is not kAbsent.
  Token other_distinct_id_;
  Token property_distinct_ids_[2];
  Token keys_[kEventKeyPlaces];
};

}  // namespace penstock

// Writes the parts of an item to the table. If a member is repeated, its last value counts.

#include "item_reader.h"

namespace penstock {
namespace {

uint32_t extra_types_of(uint64_t property_types) {
  const auto type = [&](uint32_t property, uint32_t part) {
    return static_cast<uint32_t>(type_in(property_types, property)) << 4 * part;
  };
  return type(kPropertySet, kPropertiesSet) | type(kPropertySetOnce, kPropertiesSetOnce) |
         type(kPropertyUnset, kPropertiesUnset);
}

}  // namespace

Cursor ItemReader::key_value(uint32_t place, Cursor value) {
  Token token{};
  const Cursor after = walk_.read(value, token);
  set_type(key_types_, place, token.type);
  keys_[place] = token;
  return after;
}

Token ItemReader::key(uint32_t places) const {
  for (uint32_t place = 0; place < places; place++) {
    const TokenType type = type_in(key_types_, place);
    if (!is_nothing(type) && type != kEmptyString) return keys_[place];
  }
  return {};
}

Cursor ItemReader::other_value(uint32_t name, Cursor value) {
  if (name >= kFirstKeyName)
    return reads_key_ ? key_value(name - kFirstKeyName, value) : walk_.skip(value);
  Token token{};
  const Cursor after = walk_.read(value, token);
  if (name == kOtherDistinctId) {
    other_distinct_id_ = token;
    other_distinct_id_type_ = token.type;
  } else {
    set_span(extra_ + 2 * (name - kFirstExtraName), token);
    set_type(extra_types_, name - kFirstExtraName, token.type);
  }
  return after;
}

Cursor ItemReader::properties_value(Cursor cursor) {
  // A local copy can stay in registers. For the compiler, a write to memory could change `walk_`.
  Walk& walk = walk_;
  uint64_t types = 0;
  uint32_t flags = 0;
  set_type(key_types_, kPropertiesToken, kAbsent);
  walk.depth++;
  walk.open_names();
  cursor = walk.members(cursor, [&](const Key& key, Cursor value) PENSTOCK_LAMBDA_INLINE {
    if (PENSTOCK_UNLIKELY(key.escaped)) {
      flags |= kItemEscapedKey;
      return escaped_property(key, value);
    }
    walk.note_name(key.name, key.length);
    const uint32_t property = property_of(key);
    if (property == kNoName) return walk.skip(value);
    if (property == kPropertyToken)
      return reads_key_ ? key_value(kPropertiesToken, value) : walk.skip(value);
    Token token{};
    const Cursor after = walk.read(value, token);
    const uint32_t shift = 4 * property;
    types = (types & ~(uint64_t{15} << shift)) | static_cast<uint64_t>(token.type) << shift;
    keep_property(property, token);
    return after;
  });
  walk.close_names();
  walk.depth--;
  property_types_ = types;
  properties_flags_ = flags;
  return cursor;
}

void ItemReader::keep_property(uint32_t property, const Token& token) {
  switch (property) {
    case kPropertySet: set_span(extra_ + 2 * kPropertiesSet, token); break;
    case kPropertySetOnce: set_span(extra_ + 2 * kPropertiesSetOnce, token); break;
    case kPropertyUnset: set_span(extra_ + 2 * kPropertiesUnset, token); break;
    case kPropertyDistinctId: property_distinct_ids_[0] = token; break;
    case kPropertyOtherDistinctId: property_distinct_ids_[1] = token; break;
    default: break;
  }
}

// An item with an escaped name is normalised and read again later. Only the key and the uuid are
// needed before that, because v1 answers list uuids.
Cursor ItemReader::escaped_member(const Key& key, Cursor value) {
  uint8_t room[kEscapedNameBytesMax];
  const uint32_t name = item_name_of(unescaped(key, room));
  if (name == kUuid) return field_value(walk_, kUuid, value);
  if (!reads_key_) return walk_.skip(value);
  if (name == kProperties) return escaped_properties(value);
  return name != kNoName && name >= kFirstKeyName ? key_value(name - kFirstKeyName, value)
                                                  : walk_.skip(value);
}

Cursor ItemReader::escaped_properties(Cursor value) {
  set_type(key_types_, kPropertiesToken, kAbsent);
  if (walk_.at(value) != '{') return walk_.skip(value);
  walk_.depth++;
  walk_.open_names();
  const Cursor after =
      walk_.members(value, [&](const Key& key, Cursor inner) PENSTOCK_LAMBDA_INLINE {
        if (key.escaped) {
          walk_.flags |= kItemEscapedInnerKey;
          return escaped_property(key, inner);
        }
        walk_.note_name(key.name, key.length);
        return property_of(key) == kPropertyToken ? key_value(kPropertiesToken, inner)
                                                  : walk_.skip(inner);
      });
  walk_.close_names();
  walk_.depth--;
  return after;
}

Cursor ItemReader::escaped_property(const Key& key, Cursor value) {
  if (!reads_key_) return walk_.skip(value);
  uint8_t room[kEscapedNameBytesMax];
  return property_of(unescaped(key, room)) == kPropertyToken ? key_value(kPropertiesToken, value)
                                                             : walk_.skip(value);
}

void ItemReader::finish_rare_parts() {
  const uint32_t extra_types = extra_types_ | extra_types_of(property_types_);
  if (extra_types != 0) {
    row_[kMoreTypes] |= 1u << kHasExtraShift;
    extra_[kExtraTypes] = extra_types;
    for (uint32_t part = 0; part < kExtraParts; part++) {
      if (type_in(extra_types, part) == kAbsent) set_span(extra_ + 2 * part, Token{});
    }
  }
  if (other_distinct_id_type_ != kAbsent && is_nothing(type_in(row_[kFieldTypes], kDistinctId))) {
    put_field(kDistinctId, other_distinct_id_, other_distinct_id_type_);
  }
  const TokenType other = type_in(property_types_, kPropertyOtherDistinctId);
  if (other != kAbsent && is_nothing(type_in(property_types_, kPropertyDistinctId))) {
    put_field(kPropertiesDistinctId, property_distinct_ids_[1], other);
  }
}

}  // namespace penstock

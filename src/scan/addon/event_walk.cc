// Which parts of a body the table holds, and the walk that puts them there.

#include "event_walk.h"

namespace penstock {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

template <size_t size>
PENSTOCK_INLINE bool is(const Key& key, const char (&name)[size]) {
  return std::memcmp(key.name, name, size - 1) == 0;
}

PENSTOCK_INLINE uint32_t field_of(const Key& key) {
  switch (key.length) {
    case 4: return is(key, "uuid") ? kUuid : is(key, "$set") ? kSet : kNone;
    case 5: return is(key, "event") ? kEvent : kNone;
    case 9: return is(key, "timestamp") ? kTimestamp : is(key, "$set_once") ? kSetOnce : kNone;
    case 10: return is(key, "properties") ? kProperties : kNone;
    case 11: return is(key, "distinct_id") ? kDistinctId : kNone;
    default: return kNone;
  }
}

PENSTOCK_INLINE uint32_t property_of(const Key& key) {
  switch (key.length) {
    case 4: return is(key, "$set") ? kPropertySet : kNone;
    case 5: return is(key, "alias") ? kAlias : kNone;
    case 7: return is(key, "$groups") ? kGroups : kNone;
    case 10:
      if (is(key, "$survey_id")) return kSurveyId;
      return is(key, "$group_set") ? kGroupSet : is(key, "$group_key") ? kGroupKey : kNone;
    case 11: return is(key, "distinct_id") ? kPropertyDistinctId : is(key, "$group_type") ? kGroupType : kNone;
    case 12: return is(key, "$current_url") ? kCurrentUrl : is(key, "$screen_name") ? kScreenName : kNone;
    case 23: return is(key, "$process_person_profile") ? kProcessPersonProfile : kNone;
    default: return kNone;
  }
}

PENSTOCK_INLINE void set_span(uint32_t* words, const Token& token) {
  words[0] = token.start;
  words[1] = token.end;
}

PENSTOCK_INLINE void set_type(uint32_t& types, uint32_t field, TokenType type) {
  types = (types & ~(15u << 4 * field)) | static_cast<uint32_t>(type) << 4 * field;
}

struct Properties {
  uint64_t types = 0;
  Token distinct_id{};
  uint32_t flags = 0;
};

Cursor walk_properties(Walk& walk, Cursor cursor, Properties& properties) {
  Properties found;
  walk.depth++;
  cursor = walk.members(cursor, [&](const Key& key, Cursor value) PENSTOCK_LAMBDA_INLINE {
    if (PENSTOCK_UNLIKELY(key.escaped)) {
      found.flags |= kItemEscapedKey;
      return walk.skip(value);
    }
    const uint32_t property = property_of(key);
    if (property == kNone) return walk.skip(value);
    Token token{};
    const Cursor after = walk.read(value, token);
    const uint32_t shift = 4 * property;
    if ((found.types >> shift & 15) != 0) found.flags |= kItemDuplicateKey;
    found.types = (found.types & ~(uint64_t{15} << shift)) | static_cast<uint64_t>(token.type) << shift;
    if (property == kPropertyDistinctId) found.distinct_id = token;
    return after;
  });
  walk.depth--;
  properties = found;
  return cursor;
}

// One item's object, into a row. As the root of a single event it is walked by the same code, key by key.
class ItemReader {
 public:
  ItemReader(Walk& walk, uint32_t* row) : walk_(walk), row_(row) { std::memset(row, 0, kRowWords * sizeof *row); }

  PENSTOCK_INLINE Cursor member(const Key& key, Cursor value) {
    if (PENSTOCK_UNLIKELY(key.escaped)) {
      note_escaped_key();
      return walk_.skip(value);
    }
    const uint32_t field = field_of(key);
    return field == kNone ? walk_.skip(value) : field_value(field, value);
  }

  void note_escaped_key() { flags_ |= kItemEscapedKey; }

  void finish(const Token& item) {
    set_span(row_ + kItemStart, item);
    const uint32_t flags = flags_ | properties_.flags | walk_.flags;
    row_[kPropertyTypes] = static_cast<uint32_t>(properties_.types);
    row_[kMoreTypes] = static_cast<uint32_t>(properties_.types >> 32 & 0xFF) |
                       static_cast<uint32_t>(item.type) << kItemTypeShift | flags << kItemFlagsShift;
    set_span(row_ + kFirstFieldStart + 2 * kPropertiesDistinctId, properties_.distinct_id);
    set_type(row_[kFieldTypes], kPropertiesDistinctId,
             static_cast<TokenType>(properties_.types >> 4 * kPropertyDistinctId & 15));
  }

 private:
  PENSTOCK_INLINE Cursor field_value(uint32_t field, Cursor value) {
    Token token{};
    Cursor after;
    if (field == kProperties && walk_.at(value) == '{') {
      after = walk_properties(walk_, value, properties_);
      if (after == nullptr) return nullptr;
      token = {*value, after[-1] + 1, kObject};
    } else {
      if (field == kProperties) properties_ = Properties{};
      after = walk_.read(value, token);
    }
    set_span(row_ + kFirstFieldStart + 2 * field, token);
    set_type(row_[kFieldTypes], field, token.type);
    return after;
  }

  Walk& walk_;
  uint32_t* const row_;
  uint32_t flags_ = 0;
  Properties properties_;
};

Cursor walk_item(Walk& walk, Cursor cursor, uint32_t* row) {
  walk.flags = 0;
  ItemReader item(walk, row);
  Token token{};
  Cursor after;
  walk.depth = walk.at(cursor) == '{' ? 1 : 0;
  if (walk.depth == 1) {
    after = walk.members(
        cursor, [&](const Key& key, Cursor value) PENSTOCK_LAMBDA_INLINE { return item.member(key, value); });
    if (after == nullptr) return nullptr;
    token = {*cursor, after[-1] + 1, kObject};
  } else {
    after = walk.read(cursor, token);
  }
  item.finish(token);
  return after;
}

Cursor walk_batch(Walk& walk, Cursor cursor, Batch& batch) {
  uint32_t spare_row[kRowWords];
  batch.item_count = batch.row_count = 0;
  batch.resume = nullptr;
  ++cursor;
  if (walk.at(cursor) == ']') return cursor + 1;
  for (;;) {
    const bool fits = batch.row_count < batch.row_capacity;
    if (!fits && batch.resume == nullptr) batch.resume = cursor;
    cursor = walk_item(walk, cursor, fits ? batch.rows + kRowWords * batch.row_count : spare_row);
    if (cursor == nullptr) return nullptr;
    batch.item_count++;
    if (fits) batch.row_count++;
    const uint8_t c = walk.at(cursor++);
    if (c == ']') return cursor;
    if (c != ',') return nullptr;
  }
}

// "historical_migration"
constexpr uint32_t kEnvelopeKeyBytesMax = 20;

// The key without its escapes; an empty one if it cannot be of the envelope. Those are ASCII letters and underscores,
// for which \uXXXX is the only escape there is.
Key unescaped(const Key& key, uint8_t (&name)[kEnvelopeKeyBytesMax]) {
  Key plain{name, 0, false};
  const Key other{name, 0, false};
  for (uint32_t i = 0; i < key.length; i++) {
    if (plain.length == kEnvelopeKeyBytesMax) return other;
    uint32_t c = key.name[i];
    if (c == '\\') {
      if (key.name[i + 1] != 'u') return other;
      c = four_hex_digits(key.name + i + 2);
      if (c > 0x7F) return other;
      i += 5;
    }
    name[plain.length++] = static_cast<uint8_t>(c);
  }
  return plain;
}

uint32_t envelope_word_of(const Key& key) {
  if (PENSTOCK_UNLIKELY(key.escaped)) {
    uint8_t name[kEnvelopeKeyBytesMax];
    return envelope_word_of(unescaped(key, name));
  }
  switch (key.length) {
    case 5: return is(key, "token") ? kAltKeyType : is(key, "batch") ? kBatchType : kNone;
    case 7: return is(key, "api_key") ? kApiKeyType : is(key, "sent_at") ? kSentAtType : kNone;
    case 20: return is(key, "historical_migration") ? kHistoricalType : kNone;
    default: return kNone;
  }
}

}  // namespace

Cursor walk_root(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept {
  uint32_t root_row[kRowWords];
  ItemReader root_item(walk, root_row);
  const Cursor begin = cursor;
  walk.depth = 1;
  cursor = walk.members(cursor, [&](const Key& key, Cursor value) -> Cursor {
    const uint32_t word = envelope_word_of(key);
    if (word == kNone) return root_item.member(key, value);
    if (key.escaped) root_item.note_escaped_key();
    Token token{};
    Cursor after;
    if (word == kBatchType && walk.at(value) == '[') {
      token.type = kArray;
      after = walk_batch(walk, value, batch);
      walk.depth = 1;
    } else {
      if (word == kBatchType) batch = Batch{batch.rows, batch.row_capacity};
      after = walk.read(value, token);
    }
    header[word] = token.type;
    if (word != kBatchType && word != kHistoricalType) set_span(header + word + 1, token);
    return after;
  });
  if (cursor == nullptr || header[kBatchType] != kAbsent) return cursor;
  root_item.finish({*begin, cursor[-1] + 1, kObject});
  std::memcpy(batch.rows, root_row, sizeof root_row);
  batch.item_count = batch.row_count = 1;
  return cursor;
}

void walk_rest_of_batch(Walk& walk, Batch& batch) noexcept {
  while (batch.resume != nullptr && batch.row_count < batch.row_capacity) {
    const Cursor after = walk_item(walk, batch.resume, batch.rows + kRowWords * batch.row_count);
    batch.row_count++;
    batch.resume = walk.at(after) == ',' ? after + 1 : nullptr;
  }
}

}  // namespace penstock

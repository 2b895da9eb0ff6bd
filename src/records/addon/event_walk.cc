#include "event_walk.h"

#include "array_keys.h"
#include "item_reader.h"

namespace penstock {
namespace {

RowPlace place_of(const Batch& batch, uint32_t index) {
  return {batch.rows + size_t{kRowWords} * index, batch.extras + size_t{kExtraWords} * index};
}

Cursor walk_item(Walk& walk, Cursor cursor, RowPlace place, ArrayKeys* keys, uint32_t number) {
  walk.flags = 0;
  ItemReader item(walk, place, keys != nullptr);
  Token token{};
  Cursor after;
  const uint32_t start = *cursor;
  walk.depth = walk.at(cursor) == '{' ? 1 : 0;
  if (walk.depth == 1) {
    after = walk.members(cursor, [&](const Key& key, Cursor value) PENSTOCK_LAMBDA_INLINE {
      return item.member(walk, key, value);
    });
    if (after == nullptr) return nullptr;
    token = {start, after[-1] + 1, kObject};
    if (keys != nullptr) keys->note(item.key(kEventKeyPlaces), number);
  } else {
    after = walk.read(cursor, token);
  }
  item.finish(token);
  return after;
}

Cursor walk_items(Walk& walk, Cursor cursor, Batch& batch, ArrayKeys* keys) {
  uint32_t spare_row[kRowWords];
  uint32_t spare_extra[kExtraWords];
  batch.item_count = batch.row_count = 0;
  batch.resume = 0;
  ++cursor;
  if (walk.at(cursor) == ']') return cursor + 1;
  for (;;) {
    cursor = walk.held(cursor);
    if (cursor == nullptr) return nullptr;
    const bool fits = batch.row_count < batch.row_capacity;
    if (!fits && batch.resume == 0) batch.resume = *cursor;
    const RowPlace place =
        fits ? place_of(batch, batch.row_count) : RowPlace{spare_row, spare_extra};
    cursor = walk_item(walk, cursor, place, keys, batch.item_count);
    if (cursor == nullptr) return nullptr;
    batch.item_count++;
    if (fits) batch.row_count++;
    const uint8_t c = walk.at(cursor++);
    if (c == ']') return cursor;
    if (c != ',') return nullptr;
  }
}

void set_part(uint32_t* header, uint32_t type_word, const Token& token) {
  header[type_word] = token.type;
  set_span(header + type_word + 1, token);
}

bool is_none(uint32_t type) { return type == kAbsent || type == kNull || type == kEmptyString; }

void put_single(const uint32_t* row, const uint32_t* extra, Batch& batch) {
  const RowPlace place = place_of(batch, 0);
  std::memcpy(place.row, row, kRowWords * sizeof *row);
  const bool has_extra = (row[kMoreTypes] >> kHasExtraShift & 1) != 0;
  if (has_extra) std::memcpy(place.extra, extra, kExtraWords * sizeof *extra);
  batch.item_count = batch.row_count = 1;
}

}  // namespace

Cursor walk_object(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept {
  uint32_t root_row[kRowWords];
  uint32_t root_extra[kExtraWords];
  ItemReader root_item(walk, {root_row, root_extra}, true);
  Token other_sent_at{};
  const uint32_t start = *cursor;
  walk.depth = 1;
  cursor = walk.members(cursor, [&](const Key& key, Cursor value) -> Cursor {
    const uint32_t name = envelope_name_of(key);
    if (name == kNoName) return root_item.member(walk, key, value);
    if (key.escaped) root_item.note_escaped_key();
    if (name >= kFirstEnvelopeKey) return root_item.key_value(name - kFirstEnvelopeKey, value);
    Token token{};
    Cursor after;
    if (name == kBatchType && walk.at(value) == '[') {
      token.type = kArray;
      after = walk_items(walk, value, batch, nullptr);
      walk.depth = 1;
    } else {
      if (name == kBatchType) batch = Batch{batch.rows, batch.extras, batch.row_capacity};
      after = walk.read(value, token);
    }
    if (name == kBatchType || name == kHistoricalType) header[name] = token.type;
    else if (name == kOtherSentAt) other_sent_at = token;
    else set_part(header, name, token);
    return after;
  });
  if (cursor == nullptr) return nullptr;
  if (is_none(header[kSentAtType]) && other_sent_at.type != kAbsent)
    set_part(header, kSentAtType, other_sent_at);
  const bool is_envelope = header[kBatchType] != kAbsent;
  set_part(header, kKeyType, root_item.key(is_envelope ? kEnvelopeKeyPlaces : kEventKeyPlaces));
  if (is_envelope) return cursor;
  root_item.finish({start, cursor[-1] + 1, kObject});
  put_single(root_row, root_extra, batch);
  return cursor;
}

Cursor walk_array(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept {
  ArrayKeys keys(walk.text());
  const Cursor after = walk_items(walk, cursor, batch, &keys);
  set_part(header, kKeyType, keys.first());
  header[kOtherKeyItem] = keys.other_item();
  return after;
}

void walk_rest_of_items(Walk& walk, Batch& batch) noexcept {
  Cursor cursor = walk.seek(batch.resume);
  while (batch.row_count < batch.row_capacity) {
    if (cursor != nullptr) cursor = walk.held(cursor);
    if (cursor != nullptr)
      cursor = walk_item(walk, cursor, place_of(batch, batch.row_count), nullptr, 0);
    // The text was changed after its scan.
    if (cursor == nullptr) break;
    batch.row_count++;
    batch.resume = walk.at(cursor) == ',' ? cursor[1] : 0;
    if (batch.resume == 0) break;
    ++cursor;
  }
}

}  // namespace penstock

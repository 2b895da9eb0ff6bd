// The scan table of a valid text. It shares no code with the core's walk, but shares stage 1,
// through simdjson's parser.

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "json_text.h"
#include "key_oracle.h"
#include "lexer.h"
#include "oracle.h"

namespace fuzz {
namespace {

constexpr const char* kFieldNames[] = {"event",      "distinct_id", "timestamp", "uuid",
                                       "properties", "$set",        "$set_once"};
constexpr const char* kPropertyNames[] = {
    "$survey_id",   "$set",         "$group_set",      "$groups", "$process_person_profile",
    "$current_url", "$screen_name", "$ignore_sent_at",
};
constexpr const char* kExtraProperties[] = {"$set", "$set_once", "$unset"};
constexpr const char* kExtraFields[] = {"$unset", "offset", "session_id", "window_id", "options"};

// `$distinct_id` counts if it exists and `distinct_id` is missing or null.
const Member* distinct_id_in(const Text& text, const std::vector<Member>& members) {
  const Member* const id = last_named(members, "distinct_id");
  const Member* const other = last_named(members, "$distinct_id");
  const bool is_nothing = id == nullptr || text.type(id->value) == penstock::kNull;
  return is_nothing && other != nullptr ? other : id;
}

// The words of one item.
struct Item {
  const Text& text;
  uint32_t* row;
  uint32_t* extra;

  void put_field(uint32_t field, const Member* member) const {
    if (member == nullptr) return;
    put_span(row + penstock::kFirstFieldStart + 2 * field, member->value);
    row[penstock::kFieldTypes] |= text.type(member->value) << 4 * field;
  }

  void put_extra(uint32_t part, const Member* member) const {
    if (member == nullptr) return;
    put_span(extra + 2 * part, member->value);
    extra[penstock::kExtraTypes] |= text.type(member->value) << 4 * part;
  }
};

uint32_t put_properties(const Item& item, Value properties) {
  const auto members = item.text.children(properties);
  uint32_t flags = std::any_of(members.begin(), members.end(), is_escaped)
                       ? uint32_t{penstock::kItemEscapedKey}
                       : 0;
  const auto type_of = [&](const char* name) -> uint32_t {
    const Member* const member = last_named(members, name);
    return member == nullptr ? uint32_t{penstock::kAbsent} : item.text.type(member->value);
  };
  for (uint32_t i = 0; i < std::size(kPropertyNames); i++)
    item.row[penstock::kPropertyTypes] |= type_of(kPropertyNames[i]) << 4 * i;
  item.put_field(penstock::kPropertiesDistinctId, distinct_id_in(item.text, members));
  for (uint32_t i = 0; i < std::size(kExtraProperties); i++)
    item.put_extra(i, last_named(members, kExtraProperties[i]));
  return flags;
}

enum class Level { kItem, kProperties, kInner };

// The flags for names in the value, which is the item, its `properties`, or anything deeper.
uint32_t name_flags(const Text& text, Value value, Level level) {
  const uint32_t type = text.type(value);
  if (type != penstock::kObject && type != penstock::kArray) return 0;
  uint32_t flags = 0;
  std::set<std::string> seen;
  for (const Member& member : text.children(value)) {
    Level inner = Level::kInner;
    if (type == penstock::kObject) {
      if (is_escaped(member)) {
        if (level == Level::kInner) flags |= penstock::kItemEscapedInnerKey;
      } else if (!seen.insert(member.key).second && level != Level::kItem) {
        flags |= penstock::kItemDuplicateKey;
      }
      const bool is_properties = member.key == "properties";
      if (level == Level::kItem && is_properties && text.type(member.value) == penstock::kObject)
        inner = Level::kProperties;
    }
    flags |= name_flags(text, member.value, inner);
  }
  return flags;
}

std::vector<uint32_t> expected_item(const Text& text, Value value) {
  std::vector<uint32_t> words(kItemWords);
  const Item item{text, words.data(), words.data() + penstock::kRowWords};
  put_span(item.row + penstock::kItemStart, value);
  uint32_t flags = 0;
  const std::string_view slice = text.slice(value);
  const Lexed lexed = lex(reinterpret_cast<const uint8_t*>(slice.data()), slice.size());
  if (!lexed.replaced.empty()) flags |= penstock::kItemReplacedCharacter;
  if (lexed.depth > penstock::kDepthMax) flags |= penstock::kItemTooDeep;
  if (lexed.digits > penstock::kNumberDigitsMax) flags |= penstock::kItemLongNumber;
  const uint32_t type = text.type(value);
  flags |= name_flags(text, value, type == penstock::kObject ? Level::kItem : Level::kInner);
  if (type == penstock::kObject) {
    const auto members = text.children(value);
    if (std::any_of(members.begin(), members.end(), is_escaped)) flags |= penstock::kItemEscapedKey;
    const auto plain = plainly_named(text, value);
    for (uint32_t field = 0; field < std::size(kFieldNames); field++) {
      const bool is_id = field == penstock::kDistinctId;
      const auto& among = field == penstock::kUuid ? plain : members;
      item.put_field(field,
                     is_id ? distinct_id_in(text, members) : last_named(among, kFieldNames[field]));
    }
    for (uint32_t i = 0; i < std::size(kExtraFields); i++) {
      item.put_extra(penstock::kUnset + i, last_named(members, kExtraFields[i]));
    }
    const Member* const properties = last_named(members, "properties");
    const bool has_inside =
        properties != nullptr && text.type(properties->value) == penstock::kObject;
    if (has_inside) flags |= put_properties(item, properties->value);
  }
  const uint32_t has_extra = item.extra[penstock::kExtraTypes] == 0 ? 0 : 1;
  item.row[penstock::kMoreTypes] |= type << penstock::kItemTypeShift |
                                    has_extra << penstock::kHasExtraShift |
                                    flags << penstock::kItemFlagsShift;
  return words;
}

// Fills the header and returns the items.
std::vector<Member> put_object(const Text& text, Value root, uint32_t* header) {
  const auto envelope = plainly_named(text, root);
  const auto put = [&](const Member* member, uint32_t word, bool has_span) {
    if (member == nullptr) return;
    header[word] = text.type(member->value);
    if (has_span) put_span(header + word + 1, member->value);
  };
  const Member* const sent_at = last_named(envelope, "sent_at");
  const Member* const other_sent_at = last_named(envelope, "sentAt");
  const bool takes_other = other_sent_at != nullptr && !says_something(text, sent_at);
  put(takes_other ? other_sent_at : sent_at, penstock::kSentAtType, true);
  put(last_named(envelope, "created_at"), penstock::kCreatedAtType, true);
  put(last_named(envelope, "historical_migration"), penstock::kHistoricalType, false);
  const Member* const batch = last_named(envelope, "batch");
  put(batch, penstock::kBatchType, false);
  if (batch == nullptr) {
    put_key(text, key_of_event(text, root), header);
    return {{{}, root}};
  }
  put_key(text, first_key(text, envelope, {"api_key", "token"}), header);
  if (header[penstock::kBatchType] != penstock::kArray) return {};
  return text.children(batch->value);
}

}  // namespace

std::vector<uint32_t> expected_table(const uint8_t* bytes, size_t length) {
  const Text text(bytes, length);
  const Value root = text.root();
  std::vector<uint32_t> table(penstock::kHeaderWords);
  const uint32_t type = table[penstock::kRootType] = text.type(root);
  std::vector<Member> items;
  if (type == penstock::kArray) {
    items = text.children(root);
    put_key_of_array(text, items, table.data());
  } else if (type == penstock::kObject) {
    items = put_object(text, root, table.data());
  }
  table[penstock::kItemCount] = static_cast<uint32_t>(items.size());
  for (const Member& item : items) {
    const auto words = expected_item(text, item.value);
    table.insert(table.end(), words.begin(), words.end());
  }
  return table;
}

}  // namespace fuzz

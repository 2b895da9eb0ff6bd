// The scan table of a valid text, from simdjson's On-Demand parser: it tells keys as they are written and where values
// lie. Every level is parsed anew from a copy of its own; speed does not matter here.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "check.h"
#include "event_scan.h"
#include "lexer.h"
#include "oracle.h"
#include "simdjson.h"

namespace fuzz {
namespace {

namespace ondemand = simdjson::ondemand;

struct Value {
  size_t start;
  size_t end;
};

struct Member {
  /** As written, without quotes. Empty in an array. */
  std::string key;
  Value value;
};

class Text {
 public:
  Text(const uint8_t* text, size_t length) : text_(reinterpret_cast<const char*>(text), length) {}

  Value root() const {
    const size_t start = text_.find_first_not_of(kSpace);
    return {start, text_.find_last_not_of(kSpace) + 1};
  }

  penstock::TokenType type(Value value) const {
    switch (text_[value.start]) {
      case '{': return penstock::kObject;
      case '[': return penstock::kArray;
      case 't': return penstock::kTrue;
      case 'f': return penstock::kFalse;
      case 'n': return penstock::kNull;
      case '"': break;
      default: return penstock::kNumber;
    }
    if (value.end - value.start == 2) return penstock::kEmptyString;
    return slice(value).find('\\') == std::string_view::npos ? penstock::kPlainString : penstock::kEscapedString;
  }

  std::string_view slice(Value value) const {
    return std::string_view(text_).substr(value.start, value.end - value.start);
  }

  std::vector<Member> children(Value container) const {
    static ondemand::parser parser;
    static size_t depth = 0;
    if (depth <= text_.size()) {
      depth = 2 * text_.size() + 1024;
      check(parser.allocate(depth, depth) == simdjson::SUCCESS, "On-Demand has the memory it asks for");
    }
    const simdjson::padded_string copy(slice(container));
    ondemand::document document;
    check(parser.iterate(copy).get(document) == simdjson::SUCCESS, "On-Demand takes what the DOM takes");
    std::vector<Member> found;
    const auto add = [&](std::string_view key, auto value) {
      std::string_view raw;
      check(value.raw_json().get(raw) == simdjson::SUCCESS, "On-Demand finds every value");
      raw = raw.substr(0, raw.find_last_not_of(kSpace) + 1);
      const size_t start = container.start + static_cast<size_t>(raw.data() - copy.data());
      found.push_back({std::string(key), {start, start + raw.size()}});
    };
    if (text_[container.start] == '{') {
      for (auto field : document.get_object()) {
        std::string_view key;
        check(field.escaped_key().get(key) == simdjson::SUCCESS, "On-Demand finds every key");
        add(key, field.value());
      }
    } else {
      for (auto value : document.get_array()) add({}, value);
    }
    return found;
  }

 private:
  static constexpr const char* kSpace = " \t\n\r";
  const std::string text_;
};

void put_span(uint32_t* words, Value value) {
  words[0] = static_cast<uint32_t>(value.start);
  words[1] = static_cast<uint32_t>(value.end);
}

bool is_escaped(const Member& member) { return member.key.find('\\') != std::string::npos; }

// JSON.parse keeps the last of the members of one name.
const Member* last_named(const std::vector<Member>& members, std::string_view name) {
  const auto found = std::find_if(members.rbegin(), members.rend(), [&](const Member& m) { return m.key == name; });
  return found == members.rend() ? nullptr : &*found;
}

constexpr const char* kFieldNames[] = {"event", "distinct_id", "timestamp", "uuid", "properties", "$set", "$set_once"};
constexpr const char* kPropertyNames[] = {
    "alias",   "$group_type",             "$group_key",   "$survey_id",   "$set",        "$group_set",
    "$groups", "$process_person_profile", "$current_url", "$screen_name", "distinct_id",
};

uint32_t put_properties(const Text& text, Value properties, uint32_t* row) {
  const auto members = text.children(properties);
  uint32_t flags = std::any_of(members.begin(), members.end(), is_escaped) ? uint32_t{penstock::kItemEscapedKey} : 0;
  for (uint32_t i = 0; i < std::size(kPropertyNames); i++) {
    const Member* const member = last_named(members, kPropertyNames[i]);
    if (member == nullptr) continue;
    const auto is_same = [&](const Member& other) { return other.key == member->key; };
    if (std::count_if(members.begin(), members.end(), is_same) > 1) flags |= penstock::kItemDuplicateKey;
    const uint32_t type = text.type(member->value);
    if (i < 8) {
      row[penstock::kPropertyTypes] |= type << 4 * i;
    } else if (i < 10) {
      row[penstock::kMoreTypes] |= type << 4 * (i - 8);
    } else {
      row[penstock::kFieldTypes] |= type << 4 * penstock::kPropertiesDistinctId;
      put_span(row + penstock::kFirstFieldStart + 2 * penstock::kPropertiesDistinctId, member->value);
    }
  }
  return flags;
}

std::vector<uint32_t> expected_row(const Text& text, Value item) {
  std::vector<uint32_t> row(penstock::kRowWords);
  put_span(row.data() + penstock::kItemStart, item);
  uint32_t flags = 0;
  const std::string_view slice = text.slice(item);
  const Lexed lexed = lex(reinterpret_cast<const uint8_t*>(slice.data()), slice.size());
  if (!lexed.replaced.empty()) flags |= penstock::kItemReplacedCharacter;
  if (lexed.depth > penstock::kDepthMax) flags |= penstock::kItemTooDeep;
  if (lexed.digits > penstock::kNumberDigitsMax) flags |= penstock::kItemLongNumber;
  const uint32_t type = text.type(item);
  if (type == penstock::kObject) {
    const auto members = text.children(item);
    if (std::any_of(members.begin(), members.end(), is_escaped)) flags |= penstock::kItemEscapedKey;
    for (uint32_t field = 0; field < std::size(kFieldNames); field++) {
      const Member* const member = last_named(members, kFieldNames[field]);
      if (member == nullptr) continue;
      put_span(row.data() + penstock::kFirstFieldStart + 2 * field, member->value);
      const uint32_t field_type = text.type(member->value);
      row[penstock::kFieldTypes] |= field_type << 4 * field;
      const bool has_inside = field == penstock::kProperties && field_type == penstock::kObject;
      if (has_inside) flags |= put_properties(text, member->value, row.data());
    }
  }
  row[penstock::kMoreTypes] |= type << penstock::kItemTypeShift | flags << penstock::kItemFlagsShift;
  return row;
}

// The envelope's names are letters and underscores, for which \uXXXX is the only escape there is.
std::string unescaped_ascii(const std::string& key) {
  std::string plain;
  for (size_t i = 0; i < key.size(); i++) {
    if (key[i] != '\\') {
      plain.push_back(key[i]);
    } else if (key[i + 1] == 'u') {
      const int unit = std::stoi(key.substr(i + 2, 4), nullptr, 16);
      plain.push_back(unit < 0x80 ? static_cast<char>(unit) : '?');
      i += 5;
    } else {
      plain.push_back('?');
      i++;
    }
  }
  return plain;
}

}  // namespace

std::vector<uint32_t> expected_table(const uint8_t* bytes, size_t length) {
  const Text text(bytes, length);
  const Value root = text.root();
  std::vector<uint32_t> table(penstock::kHeaderWords);
  table[penstock::kRootType] = text.type(root);
  if (table[penstock::kRootType] != penstock::kObject) return table;

  auto envelope = text.children(root);
  for (Member& member : envelope) member.key = unescaped_ascii(member.key);
  const auto put = [&](const char* name, uint32_t word, bool has_span) -> const Member* {
    const Member* const member = last_named(envelope, name);
    if (member == nullptr) return nullptr;
    table[word] = text.type(member->value);
    if (has_span) put_span(&table[word + 1], member->value);
    return member;
  };
  put("api_key", penstock::kApiKeyType, true);
  put("token", penstock::kAltKeyType, true);
  put("historical_migration", penstock::kHistoricalType, false);
  put("sent_at", penstock::kSentAtType, true);
  const Member* const batch = put("batch", penstock::kBatchType, false);

  std::vector<Member> items;
  if (batch == nullptr) {
    items.push_back({{}, root});
  } else if (table[penstock::kBatchType] == penstock::kArray) {
    items = text.children(batch->value);
  }
  table[penstock::kItemCount] = static_cast<uint32_t>(items.size());
  for (const Member& item : items) {
    const auto row = expected_row(text, item.value);
    table.insert(table.end(), row.begin(), row.end());
  }
  return table;
}

}  // namespace fuzz

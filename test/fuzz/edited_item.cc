#include "edited_item.h"

#include <algorithm>
#include <iterator>

#include "change_items.h"
#include "text_hash.h"

namespace fuzz {
namespace {

constexpr uint32_t kLevelFields[] = {penstock::kProperties, penstock::kSet, penstock::kSetOnce};

uint32_t type_of_field(const uint32_t* row, uint32_t field) {
  return row[penstock::kFieldTypes] >> 4 * field & 15;
}

void add_member(std::string& object, std::string_view name, std::string_view value) {
  if (object.size() > 1) object += ',';
  object.append("\"").append(name).append("\":").append(value);
}

}  // namespace

uint32_t path_of(uint32_t level, std::string_view name) {
  for (uint32_t index = 0; index < std::size(kPaths); index++)
    if (kPaths[index].level == level && kPaths[index].name == name) return index + 1;
  return 0;
}

void write_letters(void*, const uint8_t* value, size_t length, uint8_t* target) {
  const penstock::HashWords hash = penstock::id_hash(value, length);
  target[0] = target[penstock::kHashTextBytes - 1] = '"';
  for (uint32_t at = 0; at < penstock::kHashTextBytes - 2; at++)
    target[at + 1] =
        static_cast<uint8_t>('a' + ((at % 2 == 0 ? hash.low : hash.high) >> at / 2) % 16);
}

EditedItem::EditedItem(const Text& text, const uint32_t* row, uint32_t rules, uint32_t flags)
    : of_(text), rules_(rules), has_person_paths_((flags & penstock::kHasPersonPaths) != 0) {
  const bool sets = std::any_of(std::begin(kPaths), std::end(kPaths), [rules](const Path& path) {
    return path.edit == penstock::kSetMember && (path.rules & rules) != 0;
  });
  is_unsure_ = sets && type_of_field(row, penstock::kProperties) != penstock::kObject;
  text_ = item({row[penstock::kItemStart], row[penstock::kItemEnd]}, row);
}

std::string EditedItem::item(Value value, const uint32_t* row) {
  if (of_.type(value) != penstock::kObject) return std::string(of_.slice(value));
  std::string out = "{";
  for (const Member& member : of_.children(value)) {
    std::string text(of_.slice(member.value));
    for (uint32_t level = 0; level < (has_person_paths_ ? std::size(kLevelFields) : 1); level++) {
      const uint32_t field = kLevelFields[level];
      if (type_of_field(row, field) == penstock::kObject &&
          row[penstock::kFirstFieldStart + 2 * field] == member.value.start)
        text = object(member.value, level);
    }
    add_member(out, member.key, text);
  }
  return out + '}';
}

std::string EditedItem::object(Value value, uint32_t level) {
  const std::vector<Member> members = of_.children(value);
  std::string out = "{";
  for (const Path& path : kPaths) {
    const uint32_t rules = path.rules & rules_;
    if (path.level != level || path.edit != penstock::kSetMember || rules == 0) continue;
    if (last_named(members, path.name) != nullptr) continue;
    add_member(out, path.name, path.value);
    applied_ |= rules & -rules;
  }
  for (const Member& member : members) {
    const uint32_t number = path_of(level, member.key);
    const bool is_level = level == penstock::kPropertiesLevel && has_person_paths_ &&
                          (number == penstock::kSetLevel || number == penstock::kSetOnceLevel) &&
                          of_.type(member.value) == penstock::kObject;
    const std::string text =
        is_level ? object(member.value, number) : std::string(of_.slice(member.value));
    const std::string changed = number == 0 ? text : edited(member, kPaths[number - 1], text);
    if (!changed.empty()) add_member(out, member.key, changed);
  }
  return out + '}';
}

/** Returns the new value of a member, or "" if it is removed. */
std::string EditedItem::edited(const Member& member, const Path& path, std::string value) {
  const uint32_t rules = path.rules & rules_;
  if (rules == 0) return value;
  std::string changed;
  if (path.edit == penstock::kSetMember) {
    changed = path.value;
    if (changed == value) return value;
  } else if (path.edit == penstock::kHashMember) {
    const penstock::TokenType type = of_.type(member.value);
    if (type < penstock::kNumber) return value;
    is_unsure_ = is_unsure_ || type == penstock::kEscapedString;
    std::string_view hashed = value;
    if (value.size() >= 2 && value[0] == '"') hashed = hashed.substr(1, value.size() - 2);
    changed.resize(penstock::kHashTextBytes);
    write_letters(nullptr, reinterpret_cast<const uint8_t*>(hashed.data()), hashed.size(),
                  reinterpret_cast<uint8_t*>(changed.data()));
  }
  applied_ |= rules & -rules;
  return changed;
}

}  // namespace fuzz

// A name or key with escapes is read one character after another.

#include "key_oracle.h"

namespace fuzz {
namespace {

// A string without its escapes, if it is ASCII; the byte FF replaces any other character.
std::string unescaped_ascii(std::string_view written) {
  constexpr const char* kLetters = "bfnrt";
  constexpr const char* kControls = "\b\f\n\r\t";
  std::string plain;
  for (size_t i = 0; i < written.size(); i++) {
    if (written[i] != '\\') {
      plain.push_back(static_cast<unsigned char>(written[i]) < 0x80 ? written[i] : '\xFF');
    } else if (written[i + 1] == 'u') {
      const int unit = std::stoi(std::string(written.substr(i + 2, 4)), nullptr, 16);
      plain.push_back(unit < 0x80 ? static_cast<char>(unit) : '\xFF');
      i += 5;
    } else {
      const char* const letter = std::strchr(kLetters, written[i + 1]);
      plain.push_back(letter == nullptr ? written[i + 1] : kControls[letter - kLetters]);
      i++;
    }
  }
  return plain;
}

// The text of a key if it may be compared; nothing if only its bytes may be.
std::optional<std::string> key_text(const Text& text, Value key) {
  const auto type = text.type(key);
  const std::string_view token = text.slice(key);
  const bool is_string = type == penstock::kPlainString || type == penstock::kEscapedString;
  if (!is_string || token.size() > penstock::kKeyTokenBytesMax) return {};
  const std::string plain = unescaped_ascii(token.substr(1, token.size() - 2));
  if (plain.find('\xFF') != std::string::npos) return {};
  constexpr const char* kTrimmed = " \t\n\v\f\r";
  const size_t first = plain.find_first_not_of(kTrimmed);
  if (first == std::string::npos) return "";
  return plain.substr(first, plain.find_last_not_of(kTrimmed) + 1 - first);
}

bool is_same_key(const Text& text, Value one, Value other) {
  if (text.slice(one) == text.slice(other)) return true;
  const auto key = key_text(text, one);
  return key && key == key_text(text, other);
}

}  // namespace

std::vector<Member> plainly_named(const Text& text, Value object) {
  auto members = text.children(object);
  for (Member& member : members) member.key = unescaped_ascii(member.key);
  return members;
}

bool says_something(const Text& text, const Member* member) {
  if (member == nullptr) return false;
  const auto type = text.type(member->value);
  return type != penstock::kNull && type != penstock::kEmptyString;
}

MaybeValue first_key(const Text& text, const std::vector<Member>& members,
                     std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const Member* const member = last_named(members, name);
    if (says_something(text, member)) return member->value;
  }
  return {};
}

MaybeValue key_of_event(const Text& text, Value event) {
  if (text.type(event) != penstock::kObject) return {};
  const auto members = plainly_named(text, event);
  const MaybeValue key = first_key(text, members, {"api_key", "token", "$token"});
  const Member* const properties = last_named(members, "properties");
  if (key || properties == nullptr || text.type(properties->value) != penstock::kObject) return key;
  return first_key(text, plainly_named(text, properties->value), {"token"});
}

void put_key(const Text& text, MaybeValue key, uint32_t* header) {
  if (!key) return;
  header[penstock::kKeyType] = text.type(*key);
  put_span(header + penstock::kKeyType + 1, *key);
}

void put_key_of_array(const Text& text, const std::vector<Member>& items, uint32_t* header) {
  MaybeValue first;
  for (size_t i = 0; i < items.size() && header[penstock::kOtherKeyItem] == 0; i++) {
    const MaybeValue key = key_of_event(text, items[i].value);
    if (!first) first = key;
    else if (key && !is_same_key(text, *first, *key))
      header[penstock::kOtherKeyItem] = static_cast<uint32_t>(i);
  }
  put_key(text, first, header);
}

}  // namespace fuzz

// A valid JSON text as read by simdjson's On-Demand parser, which returns keys as they are written
// and the positions of values. Every level is parsed again from a copy; speed does not matter here.

#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.h"
#include "event_scan.h"
#include "simdjson.h"

namespace fuzz {
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
    return slice(value).find('\\') == std::string_view::npos ? penstock::kPlainString
                                                             : penstock::kEscapedString;
  }

  std::string_view slice(Value value) const {
    return std::string_view(text_).substr(value.start, value.end - value.start);
  }

  std::vector<Member> children(Value container) const {
    static ondemand::parser parser;
    static size_t depth = 0;
    if (depth <= text_.size()) {
      depth = 2 * text_.size() + 1024;
      check(parser.allocate(depth, depth) == simdjson::SUCCESS,
            "On-Demand has the memory it asks for");
    }
    const simdjson::padded_string copy(slice(container));
    ondemand::document document;
    check(parser.iterate(copy).get(document) == simdjson::SUCCESS,
          "On-Demand takes what the DOM takes");
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

inline void put_span(uint32_t* words, Value value) {
  words[0] = static_cast<uint32_t>(value.start);
  words[1] = static_cast<uint32_t>(value.end);
}

inline bool is_escaped(const Member& member) { return member.key.find('\\') != std::string::npos; }

// JSON.parse keeps the last of the members of one name.
inline const Member* last_named(const std::vector<Member>& members, std::string_view name) {
  const auto found = std::find_if(members.rbegin(), members.rend(),
                                  [&](const Member& m) { return m.key == name; });
  return found == members.rend() ? nullptr : &*found;
}

}  // namespace fuzz

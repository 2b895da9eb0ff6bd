// The key of a body that is JSON: a second implementation of the rules in table.ts.

#pragma once

#include <initializer_list>
#include <optional>

#include "json_text.h"

namespace fuzz {

using MaybeValue = std::optional<Value>;

/** The members with their names unescaped. */
std::vector<Member> plainly_named(const Text& text, Value object);

/** The value under the first of the names that holds anything but null or "". */
MaybeValue first_key(const Text& text, const std::vector<Member>& members,
                     std::initializer_list<const char*> names);
MaybeValue key_of_event(const Text& text, Value event);
bool says_something(const Text& text, const Member* member);

/** Writes into the header. */
void put_key(const Text& text, MaybeValue key, uint32_t* header);
void put_key_of_array(const Text& text, const std::vector<Member>& items, uint32_t* header);

}  // namespace fuzz

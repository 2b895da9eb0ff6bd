// What rules do with the members of an item, in a simple implementation over
// On-Demand.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "find_members.h"
#include "json_text.h"

namespace fuzz {

/** A member that rules name. */
struct Path {
  uint32_t level;
  std::string_view name;
  uint32_t row_part;
  /** A bit for each rule that edits the member. */
  uint32_t rules;
  uint32_t edit;
  /** The value to set. */
  std::string_view value;
};

inline constexpr uint32_t kSpan = penstock::kRowPartSpan;
inline constexpr uint32_t kNoPart = penstock::kNoRowPart;

/** Rules that count no change if another rule of their path is applied. */
inline constexpr uint32_t kOneMoreRule = 1u << 31;
inline constexpr uint32_t kOtherMoreRule = 1u << 30;

/** The number of a path is its index, from 1 on. The first two are levels. */
inline constexpr Path kPaths[] = {
    {0, "$set", kSpan, 0, penstock::kRemoveMember, ""},
    {0, "$set_once", kSpan, 0, penstock::kRemoveMember, ""},
    {0, "properties", kNoPart, 1, penstock::kRemoveMember, ""},
    {0, "a", kNoPart, 2 | kOneMoreRule, penstock::kSetMember, "\"b\""},
    {0, "", kNoPart, 2, penstock::kHashMember, ""},
    {0, "distinct_id", kSpan, 8, penstock::kSetMember, "null"},
    {1, "a", kNoPart, 1, penstock::kRemoveMember, ""},
    {1, "", kNoPart, 1 | kOtherMoreRule, penstock::kHashMember, ""},
    {2, "email", kNoPart, 9, penstock::kRemoveMember, ""},
    {2, "a", kNoPart, 2, penstock::kHashMember, ""},
    {1, "$set", kNoPart, 8, penstock::kRemoveMember, ""},
    {0, "$groups", 4 * penstock::kGroups, 5, penstock::kHashMember, ""},
    {0, "$screen_name", 4 * penstock::kScreenName, 12, penstock::kSetMember, "1"},
    {0, "event", kNoPart, 9, penstock::kRemoveMember, ""},
    {0, "$current_url", 4 * penstock::kCurrentUrl, 2, penstock::kRemoveMember, ""},
};
/** Number of the other rules. */
inline constexpr uint32_t kRules = 4;

/** Returns the number of the path, or 0. */
uint32_t path_of(uint32_t level, std::string_view name);

/** Writes a quote, 64 letters that depend on the value, and a quote. */
void write_letters(void* context, const uint8_t* value, size_t length, uint8_t* target);

class EditedItem {
 public:
  /** `rules` has a bit for each rule. `flags` is a sum of NamesFlag. */
  EditedItem(const Text& text, const uint32_t* row, uint32_t rules, uint32_t flags);

  /** The item with the edits, without white space between the members that
   * rules can edit. */
  const std::string& text() const { return text_; }

  /** A bit for each rule that counts the change of the item. */
  uint32_t applied() const { return applied_; }

  /** Whether the addon must not edit the item. */
  bool is_unsure() const { return is_unsure_; }

 private:
  std::string object(Value value, uint32_t level);
  std::string item(Value value, const uint32_t* row);
  std::string edited(const Member& member, const Path& path, std::string value);

  const Text& of_;
  const uint32_t rules_;
  const bool has_person_paths_;
  std::string text_;
  uint32_t applied_ = 0;
  bool is_unsure_ = false;
};

}  // namespace fuzz

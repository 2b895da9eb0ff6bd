// Finds the members of events that have one of a set of names: members of `properties`, of its
// `$set` and `$set_once`, and of the event's own `$set` and `$set_once`. Independent of Node. The
// rules of a project name these members. `../found-members.ts` documents the layout, and a test
// checks that both files agree.
//
// The members of a row are listed, or edited: then the row gets a change in the form that
// change_items.h describes. The members that are listed are also judged by the schema of the row.
// If all pass for sure, they need not be listed.
//
// The items must be plain: names are compared byte by byte, without their escapes. The offsets of
// the tokens are those of the last scan. The text, the offsets of the table, the names and the
// checks are not trusted. No byte outside of them, the rows and the lists is touched.

#pragma once

#include "event_scan.h"
#include "row_tasks.h"
#include "schema_checks.h"
#include "token_index.h"

namespace penstock {

enum FoundWord : uint32_t {
  kFoundRow = 0,
  kFoundPath = 1,
  kFoundContainer = 2,
  kFoundOrdinal = 3,
  kFoundStart = 4,
  kFoundValueStart = 5,
  kFoundValueEnd = 6,
  kFoundType = 7,
  kFoundWords = 8,
};

/** Values of kFoundPath that are not paths. */
inline constexpr uint32_t kUnnamedPath = 0;
inline constexpr uint32_t kContainerPath = UINT32_MAX;
inline constexpr uint32_t kSchemaPath = UINT32_MAX - 1;

/** The parts of kFoundType. */
enum FoundTypePart : uint32_t {
  kFoundToken = 15,
  /** The value, or in an entry of a schema every property, passes for sure. */
  kFoundSure = 16,
};

/**
 * The words before the hash table of names. The members to set and the checks of
 * the schemas follow the table.
 */
enum NamesWord : uint32_t {
  /** The sum of NamesFlag. */
  kNamesFlags = 0,
  /** The lower half of the filter, which has a bit for each name. */
  kNamesFilterLow = 1,
  kNamesFilterHigh = 2,
  /** Number of slots, a power of two. At least one slot is free. */
  kNamesSlots = 3,
  /** Number of members to set. */
  kNamesSets = 4,
  kNamesWords = 5,
};

enum NamesFlag : uint32_t {
  /** Every member of `properties` is listed. */
  kListsAll = 1,
  /** The event's own `$set` and `$set_once` are searched, and those in `properties`. */
  kHasPersonPaths = 2,
  /** Each object that is searched has an entry. */
  kListsContainers = 4,
};

/** The words of a slot of the hash table of names. */
enum NameSlot : uint32_t {
  kSlotHash = 0,
  kSlotNameStart = 1,
  kSlotNameEnd = 2,
  /** The level of the object that has the member. */
  kSlotLevel = 3,
  /** The number of the path. */
  kSlotPath = 4,
  /** A bit for each rule that edits the member. */
  kSlotEditedBy = 5,
  /** A value of MemberEdit. */
  kSlotEdit = 6,
  /** The shift of the member's type in the word kPropertyTypes of a row, or a value of RowPart. */
  kSlotRowPart = 7,
  kSlotWords = 8,
};

/** What rules do with a member. */
enum MemberEdit : uint32_t {
  kRemoveMember = 0,
  kHashMember = 1,
  /** The index of the member to set is added. */
  kSetMember = 2,
};

/** The words of a member of `properties` to set. */
enum SetWord : uint32_t {
  /** A bit for each rule that sets the member. */
  kSetRules = 0,
  /** The name, a colon and the value in the texts of the rules. A comma follows. */
  kSetTextStart = 1,
  kSetValueStart = 2,
  kSetTextEnd = 3,
  kSetType = 4,
  kSetRowPart = 5,
  kSetWords = 6,
};

inline constexpr size_t kSetsMax = 32;

enum RowPart : uint32_t {
  kNoRowPart = UINT32_MAX,
  /** The table has the offsets of the member. */
  kRowPartSpan = UINT32_MAX - 1,
};

/**
 * The levels of objects. `$set` and `$set_once` in `properties` have the paths 1 and 2, which are
 * the levels of their members.
 */
enum MemberLevel : uint32_t {
  kPropertiesLevel = 0,
  kSetLevel = 1,
  kSetOnceLevel = 2,
};

/**
 * Returns the hash of a name at a level: over its length, and its first, middle and last bytes,
 * because most members have no slot. found-members.ts has the same function.
 */
uint32_t member_hash(uint32_t level, const uint8_t* name, size_t length) noexcept;

/** Returns the bit of a name in the filter. The name is in quotes. */
uint64_t member_bit(const uint8_t* name, size_t length) noexcept;

struct MemberNames {
  /** The texts of the rules, which are also the first texts of the changes. */
  const uint8_t* texts;
  size_t texts_length;
  /** Open addressing with linear probing by the hash of level and name. */
  const uint32_t* slots;
  size_t slot_count;
  uint32_t flags;
  uint64_t filter;
  /** At most kSetsMax members, in the order in which they are added. */
  const uint32_t* sets;
  size_t set_count;
  const uint32_t* checks;
  size_t checks_length;
};

struct FoundList {
  uint32_t* words;
  /** Number of entries for which there is space. */
  size_t capacity;
};

/** Changes are added at the end. If it exceeds the capacity, not all of them are written. */
struct EditList {
  uint32_t* words;
  size_t capacity;
};

inline constexpr size_t kCannotFind = SIZE_MAX;

/**
 * Finds the members of the rows with such a task, and writes the results of the rows and the counts
 * of the tasks. Returns the number of entries. If it exceeds the capacity, only the first ones are
 * written. Returns kCannotFind if the text is not the one whose tokens are in the index.
 */
size_t find_members(TokenIndex& index, const uint8_t* text, const RowTasks& rows,
                    const MemberNames& names, const FoundList& found,
                    const EditList& edits) noexcept;

}  // namespace penstock

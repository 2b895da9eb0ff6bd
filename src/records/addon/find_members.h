// Finds the members of events that have one of a set of names: members of `properties`, of its
// `$set` and `$set_once`, and of the event's own `$set` and `$set_once`. Independent of Node. The
// rules of a project name these members. `../found-members.ts` documents the layout, and a test
// checks that both files agree.
//
// The members of a row are listed, or cut: then the row gets a change without the members that its
// rules remove, in the form that change_items.h describes. The members that are listed are also
// judged by the schema of the row. If all pass for sure, they need not be listed.
//
// The items must be plain: names are compared byte by byte, without their escapes. The offsets of
// the tokens are those of the last scan. The text, the offsets of the table, the names and the
// checks are not trusted. No byte outside of them, the rows and the lists is touched.

#pragma once

#include "event_scan.h"
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

/** The words before the hash table of names. The checks of the schemas follow the table. */
enum NamesWord : uint32_t {
  /** The sum of NamesFlag. */
  kNamesFlags = 0,
  /** The lower half of the filter, which has a bit for each name. */
  kNamesFilterLow = 1,
  kNamesFilterHigh = 2,
  /** Number of slots, a power of two. At least one slot is free. */
  kNamesSlots = 3,
  kNamesWords = 4,
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
  /** A bit for each rule that removes the member. */
  kSlotRemovedBy = 5,
  /** The shift of the member's type in the word kPropertyTypes of a row, or a value of RowPart. */
  kSlotRowPart = 6,
  kSlotWords = 7,
};

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

/** The words of the argument `place` of findMembers. The rows follow, with kPlaceRowWords each. */
enum MemberPlace : uint32_t {
  kPlaceRowCount = 0,
  /** The end of the changes before the call, and then after it. */
  kPlaceChangesEnd = 1,
  kPlaceFirstRow = 2,
  kPlaceRowWords = 3,
};

/** The words of a row in the argument `place`. */
enum PlaceRow : uint32_t {
  kPlaceRow = 0,
  /** A bit for each rule that removes members. */
  kPlaceRemovals = 1,
  /** The offset of the schema's checks, perhaps with kAlsoListed; 0 without a schema. */
  kPlaceSchema = 2,
};
/** The row has entries even if all members pass the schema for sure. */
inline constexpr uint32_t kAlsoListed = 0x80000000;

/**
 * Returns the hash of a name at a level: over its length, and its first, middle and last bytes,
 * because most members have no slot. found-members.ts has the same function.
 */
uint32_t member_hash(uint32_t level, const uint8_t* name, size_t length) noexcept;

/** Returns the bit of a name in the filter. The name is in quotes. */
uint64_t member_bit(const uint8_t* name, size_t length) noexcept;

struct MemberNames {
  const uint8_t* text;
  size_t text_length;
  /** Open addressing with linear probing by the hash of level and name. */
  const uint32_t* slots;
  size_t slot_count;
  uint32_t flags;
  uint64_t filter;
  const uint32_t* checks;
  size_t checks_length;
};

struct MemberRows {
  const uint32_t* table;
  size_t row_capacity;
  /** A row has kPlaceRowWords words. If it has rules, its members are cut, otherwise listed. */
  const uint32_t* rows;
  size_t row_count;
};

struct FoundList {
  uint32_t* words;
  /** Number of entries for which there is space. */
  size_t capacity;
};

/** Changes are added at `end`. If it exceeds the capacity, not all of them are written. */
struct CutList {
  uint32_t* words;
  size_t capacity;
  size_t end;
};

inline constexpr size_t kCannotFind = SIZE_MAX;

/**
 * Returns the number of entries. If it exceeds the capacity, only the first ones are written.
 * Returns kCannotFind if the text is not the one whose tokens are in the index.
 */
size_t find_members(TokenIndex& index, const uint8_t* text, const MemberRows& rows,
                    const MemberNames& names, const FoundList& found, CutList& cuts) noexcept;

}  // namespace penstock

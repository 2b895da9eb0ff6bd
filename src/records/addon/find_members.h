// Finds the members of events that have one of a set of names: members of `properties`, of objects
// directly inside `properties`, and of the event's own `$set` and `$set_once`. Independent of Node.
// The rules of a project name these members. `../found-members.ts` documents the layout, and a test
// checks that both files agree.
//
// The items must be plain: names are compared byte by byte, without their escapes. The offsets of
// the tokens are those of the last scan. The text, the offsets of the table and the names are not
// trusted. No byte outside the text, the names, the rows and the list is touched.

#pragma once

#include "event_scan.h"
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

/** The words of a slot of the hash table of names. */
enum NameSlot : uint32_t {
  kSlotHash = 0,
  kSlotNameStart = 1,
  kSlotNameEnd = 2,
  /** The level of the object that has the member. */
  kSlotLevel = 3,
  /** The number of the path; 0 if only members of the member's value have a path. */
  kSlotPath = 4,
  /** The level of the member's value, if members of it have a path; else 0. */
  kSlotInnerLevel = 5,
  kSlotWords = 6,
};

/** The levels of objects. Other objects inside `properties` have higher levels. */
enum MemberLevel : uint32_t {
  kPropertiesLevel = 0,
  kSetLevel = 1,
  kSetOnceLevel = 2,
};

/** The words of the argument `place` of findMembers. The indexes of the rows follow. */
enum MemberPlace : uint32_t {
  kPlaceRowCount = 0,
  kPlaceListsAll = 1,
  kPlaceHasPersonPaths = 2,
  kPlaceListsContainers = 3,
  kPlaceFirstRow = 4,
};

/**
 * Returns the hash of a name at a level: over its length, and its first, middle and last bytes,
 * because most members have no slot. found-members.ts has the same function.
 */
uint32_t member_hash(uint32_t level, const uint8_t* name, size_t length) noexcept;

struct MemberNames {
  const uint8_t* text;
  size_t text_length;
  /** Open addressing with linear probing by the hash of level and name. */
  const uint32_t* slots;
  /** A power of two. At least one slot is free. */
  size_t slot_count;
  /** Whether every member of `properties` is listed. */
  bool lists_all;
  /** Whether the event's own `$set` and `$set_once` are searched. */
  bool has_person_paths;
  /** Whether each object that is searched has an entry. */
  bool lists_containers;
};

struct MemberRows {
  const uint32_t* table;
  size_t row_capacity;
  /** Indexes of rows, ascending. */
  const uint32_t* rows;
  size_t row_count;
};

struct FoundList {
  uint32_t* words;
  /** Number of entries for which there is space. */
  size_t capacity;
};

inline constexpr size_t kCannotFind = SIZE_MAX;

/**
 * Returns the number of entries. If it exceeds the capacity, only the first ones are written.
 * Returns kCannotFind if the text is not the one whose tokens are in the index.
 */
size_t find_members(TokenIndex& index, const uint8_t* text, const MemberRows& rows,
                    const MemberNames& names, const FoundList& found) noexcept;

}  // namespace penstock

// Finds the values of event names in a hash table of known names. Independent of Node. The rules of
// a project fill the table with the names that its events have. `../name-table.ts` documents the
// layout, and a test checks that both files agree.
//
// The offsets of the table of rows are not trusted. No byte outside the text, the rows, the slots
// and the results is touched.

#pragma once

#include "event_scan.h"

namespace penstock {

/** The words of a slot. kNameBytes is 0 in a free slot. */
enum KnownName : uint32_t {
  kNameBytes = 0,
  kNameValue = 1,
  kNameText = 2,
  kNameWords = 16,
};
/**
 * Number of slots that can have a name. With a limit, a client that fills the table or chooses
 * names with the same hash cannot make the search long.
 */
inline constexpr size_t kNameProbesMax = 8;
inline constexpr uint32_t kNameBytesMax = (kNameWords - kNameText) * sizeof(uint32_t);

/** The words of the argument `rows` of findNames. The results of the rows follow. */
enum NamedRows : uint32_t {
  kNamedFirst = 0,
  kNamedCount = 1,
  kNamedResults = 2,
};

/** Results that are no values of the table. Values are below kUnknownName. */
enum NameResult : uint32_t {
  /** A name that is not in the table. The index of the slot for it is added. */
  kUnknownName = 0x80000000,
  /** The item is not plain, or its name is not a short string without escapes. */
  kUnreadName = UINT32_MAX,
};

struct KnownNames {
  const uint32_t* slots;
  /** A power of two. */
  size_t slot_count;
};

struct NamedItems {
  const uint32_t* table;
  size_t first;
  size_t count;
};

/** The hash of a name, which `../few-names.ts` computes as well. */
uint32_t known_name_hash(const uint8_t* name, size_t length) noexcept;

/** Writes a result for each row. Returns the number of results that are not 0. */
size_t find_names(const uint8_t* text, size_t length, const NamedItems& items,
                  const KnownNames& names, uint32_t* results) noexcept;

}  // namespace penstock

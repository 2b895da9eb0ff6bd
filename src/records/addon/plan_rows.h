// Writes what is to do with each row, from a hash table of known event names. Independent of Node.
// The rules of a project fill the table with the names that its events have. `../name-table.ts`
// documents the layout, and a test checks that both files agree.
//
// The offsets of the table of rows are not trusted. No byte outside the text, the rows, the slots
// and the tasks is touched.

#pragma once

#include "row_tasks.h"

namespace penstock {

/** The words of a slot. kNameBytes is 0 in a free slot. */
enum KnownName : uint32_t {
  kNameBytes = 0,
  /** The words of the rows whose events have the name. */
  kNameKind = 1,
  kNameArgument = 2,
  kNameText = 3,
  kNameWords = 19,
};
/**
 * Number of slots that can have a name. With a limit, a client that fills the table or chooses
 * names with the same hash cannot make the search long.
 */
inline constexpr size_t kNameProbesMax = 8;
inline constexpr uint32_t kNameBytesMax = (kNameWords - kNameText) * sizeof(uint32_t);

/** Maximum bytes of a simple distinct id whose stored text is always the id itself. */
inline constexpr uint32_t kSampledIdBytesMax = 400;

/** Returns the hash of a distinct id for samples. src/records/sample-hash.ts has the same function.
 */
uint32_t sample_hash(const uint8_t* id, size_t length) noexcept;

struct KnownNames {
  const uint32_t* slots;
  /** A power of two. */
  size_t slot_count;
};

/** Writes the words of each row, and the counts of tasks. */
void plan_rows(const uint8_t* text, size_t length, const RowTasks& rows,
               const KnownNames& names) noexcept;

}  // namespace penstock

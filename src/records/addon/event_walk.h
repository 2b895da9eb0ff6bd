#pragma once

#include "json_walk.h"

namespace penstock {

/**
 * The rows that one call writes. Items that have no row, because the table is full, are still
 * checked and counted.
 */
struct Batch {
  uint32_t* rows;
  uint32_t* extras;
  size_t row_capacity;
  uint32_t item_count = 0;
  uint32_t row_count = 0;
  /** The offset of the first item that has no row, or 0 if all items have one. */
  uint32_t resume = 0;
};

/** Walks a root object: an event or the envelope of a batch. The header must contain zeros. */
Cursor walk_object(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

Cursor walk_array(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

void walk_rest_of_items(Walk& walk, Batch& batch) noexcept;

}  // namespace penstock

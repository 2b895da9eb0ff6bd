// The walk over an event, an envelope or an array of events. Does not interpret the parts.

#pragma once

#include "json_walk.h"

namespace penstock {

/** The rows of one call. Items beyond the capacity are checked and counted too. */
struct Batch {
  uint32_t* rows;
  uint32_t* extras;
  size_t row_capacity;
  uint32_t item_count = 0;
  uint32_t row_count = 0;
  /** The offset of the first item without a row; 0 if every item has a row. */
  uint32_t resume = 0;
};

/**
 * Walks the root object. Only the end of the object shows whether it is the envelope of a batch or
 * an event. Fills the rows and the envelope's words of the header, which must be zeroed.
 */
Cursor walk_object(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

/** Walks a root array. Fills a row per item, and writes the key of the items to the header. */
Cursor walk_array(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

/** Fills rows from `batch.resume` on, then sets `batch.resume` to the first item without a row. */
void walk_rest_of_items(Walk& walk, Batch& batch) noexcept;

}  // namespace penstock

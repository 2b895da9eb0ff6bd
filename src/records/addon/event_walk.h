// The walk over an event, an envelope or an array of events. Does not interpret the parts.

#pragma once

#include "json_walk.h"

namespace penstock {

/** The rows of one call. An item beyond the capacity is checked and counted like the others. */
struct Batch {
  uint32_t* rows;
  uint32_t* extras;
  size_t row_capacity;
  uint32_t item_count = 0;
  uint32_t row_count = 0;
  /** The offset of the first item without a row; 0 if every item has one. */
  uint32_t resume = 0;
};

/**
 * Walks the root object, which is the envelope of a batch or an event; which one is known only at
 * its end. Fills the rows and the words of the (zeroed) header that hold parts of the envelope.
 */
Cursor walk_object(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

/** Walks a root that is an array: its items are rows, and the header has their key. */
Cursor walk_array(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

/**
 * Fills rows of validated items from `batch.resume` on, and moves it to the first item without a
 * row.
 */
void walk_rest_of_items(Walk& walk, Batch& batch) noexcept;

}  // namespace penstock

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

/** The root is an event or the envelope of a batch. The header must be zeroed. */
Cursor walk_object(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

Cursor walk_array(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

void walk_rest_of_items(Walk& walk, Batch& batch) noexcept;

}  // namespace penstock

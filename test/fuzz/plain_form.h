// What must hold of the normaliser, whatever it is given. That its results mean the same as what
// went in is held elsewhere: the tests and `npm run fuzz -- --reference` compare them with the
// reference's, byte for byte.

#pragma once

#include <cstddef>
#include <cstdint>

namespace fuzz {

/**
 * An item of a text that was scanned: there is a plain form unless it is too deep, it is JSON,
 * plain, and its own plain form.
 */
void check_item_in_plain_form(const uint8_t* text, const uint32_t* row);

/** A text that may be anything: nothing outside of it and of a target of its size is touched. */
void check_any_text_is_safe(const uint8_t* text, size_t length);

}  // namespace fuzz

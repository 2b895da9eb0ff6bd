// The guarantees of the normaliser for any input. That its results keep the meaning of the input is
// tested elsewhere: the tests and `npm run fuzz -- --reference` compare them with the reference's,
// byte for byte.

#pragma once

#include <cstddef>
#include <cstdint>

namespace fuzz {

/**
 * An item of a scanned text: it has a plain form unless it is too deep. The form is JSON, plain,
 * and unchanged when normalised again.
 */
void check_item_in_plain_form(const uint8_t* text, const uint32_t* row);

/** A text that may be anything: nothing outside of it and of a target of its size is accessed. */
void check_any_text_is_safe(const uint8_t* text, size_t length);

}  // namespace fuzz

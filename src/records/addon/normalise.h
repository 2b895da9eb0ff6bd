// Writes a JSON value in plain form: one spelling of each string, one member of each name, no white
// space. The scanner and the rules then know only that form. It must not know what an event is.
//
// Plain: strings hold each character as itself but for \" \\ \b \f \n \r \t and, for other control
// characters, \u00xx; U+0000 and escaped surrogates without their partner are U+FFFD. Of members
// whose names are then the same, the last stays, where it stands. Numbers keep their text. The
// result means what JSON.parse reads, and is its own plain form.
//
// Reads [text, text + length) and no other byte, whatever they hold; writes at most `length` bytes.
// Takes time and memory in proportion to the length, and no stack. Safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNotNormal = SIZE_MAX;
inline constexpr size_t kNormaliseOutOfMemory = SIZE_MAX - 1;

/**
 * Bytes written to `target`. kNotNormal: the text is not one JSON value, or nests deeper than
 * kDepthMax. What it takes for JSON is what a scan accepted; of other texts it may take some, and
 * then writes something without meaning.
 */
size_t normalise(const uint8_t* text, size_t length, uint8_t* target) noexcept;

}  // namespace penstock

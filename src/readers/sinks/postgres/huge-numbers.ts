// Detects numbers with an exponent so large that jsonb would write thousands of digits. Nine bytes
// can become 131,072, and a table with some thousand such numbers can be neither read nor dumped.
// Many numbers with smaller exponents have the same effect.

import { Ascii, stringEnd } from "../../../platform/base/ascii.ts";

/** Maximum exponent of a number. Doubles have exponents up to 308. */
const exponentMax = 999;
/**
 * Maximum sum of the exponents in one JSON text, which is about the number of digits that are
 * written.
 */
const exponentSumMax = 67_108_864;
const letterE = 0x65;
const zero = 0x30;
const nine = zero + 9;
/** Bit that turns an upper-case letter into a lower-case one. */
const lowerCase = 0x20;

/** Whether the JSON, which must be well-formed, has a number that is too large. */
export function hasHugeNumber(json: Uint8Array): boolean {
  const { length } = json;
  let sum = 0;
  for (let at = 0; at < length; at++) {
    const byte = json[at]!;
    if (byte === Ascii.Quote) at = stringEnd(json, at + 1);
    else if ((byte | lowerCase) === letterE && isDigit(json[at - 1])) {
      const exponent = exponentAt(json, at + 1);
      sum += exponent;
      if (exponent > exponentMax || sum > exponentSumMax) return true;
    }
  }
  return false;
}

/** Returns the exponent without its sign. Parsing stops when the exponent is too large. */
function exponentAt(json: Uint8Array, start: number): number {
  let at = start;
  if (json[at] === Ascii.Plus || json[at] === Ascii.Minus) at++;
  let exponent = 0;
  for (; isDigit(json[at]) && exponent <= exponentMax; at++)
    exponent = 10 * exponent + json[at]! - zero;
  return exponent;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= nine;
}

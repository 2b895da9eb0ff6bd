// Numbers with so large an exponent that jsonb would write them out with thousands of digits: nine
// bytes become 131,072, and a table with some thousand of them can be neither read nor dumped. Many
// with a smaller one come to the same.

import { Ascii, stringEnd } from "../../../platform/base/ascii.ts";

/** Doubles go to 308. */
const exponentMax = 999;
/** The sum of the exponents of one JSON: about as many digits are written out. */
const exponentSumMax = 67_108_864;
const letterE = 0x65;
const zero = 0x30;
const nine = zero + 9;
/** Makes an upper-case letter a lower-case one. */
const lowerCase = 0x20;

/** `json` is well-formed. */
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

/** Without its sign; one that is too large is not read to its end. */
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

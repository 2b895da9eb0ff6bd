// Finds numbers that jsonb would write with thousands of digits. Nine bytes can become 131,072, and
// a table with thousands of such numbers can be neither read nor dumped.

import { Ascii, stringEnd } from "../../../platform/base/ascii.ts";

/** Doubles have exponents up to 308. */
const exponentMax = 999;
/** About the number of digits that one JSON text may have. */
const exponentSumMax = 67_108_864;
const letterE = 0x65;
const zero = 0x30;
const nine = zero + 9;
const lowerCase = 0x20;

/** The JSON must be well-formed. */
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

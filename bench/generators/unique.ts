// The place in a large body that makes one request differ from the next, so that Penstock, which
// stores a large body that comes again within two minutes once, stores each.

import { randomBytes } from "node:crypto";

export const uniqueMark = "unique-00000000000000000000000000000000";

/** Writes 128 random bits, as hex, into the place. `at` is where the mark was found. */
export function makeUnique(body: Buffer, at: number): void {
  body.write(randomBytes(16).toString("hex"), at + "unique-".length, "latin1");
}

/** Where the mark stands. Throws when it does not. */
export function findMark(body: Buffer): number {
  const at = body.indexOf(uniqueMark);
  if (at < 0) throw new Error("make body unique: the mark is not in it");
  return at;
}

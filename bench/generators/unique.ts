// The mark in a large body. Each request overwrites it with a different value, because Penstock
// stores a large body that repeats within two minutes only once.

import { randomBytes } from "node:crypto";

export const uniqueMark = "unique-00000000000000000000000000000000";

export function makeUnique(body: Buffer, at: number): void {
  body.write(randomBytes(16).toString("hex"), at + "unique-".length, "latin1");
}

export function findMark(body: Buffer): number {
  const at = body.indexOf(uniqueMark);
  if (at < 0) throw new Error("make body unique: the mark is not in it");
  return at;
}

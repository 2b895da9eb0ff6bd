// The numbers of commits.

import { randomInt } from "node:crypto";

/** Numbers are drawn below it, which is the most that randomInt takes. */
const numberEnd = 2 ** 48 - 1;

/** One that no other commit has, but by a chance of one in 10^14. Never 0, which is no commit. */
export function newCommitNumber(): number {
  return randomInt(1, numberEnd);
}

// What a request costs a project's limits, for tests that ask a meter without an intake.

import type { RequestCost } from "../src/base/types.ts";

export function costOf(events: number, bytes: number): RequestCost {
  return { events, bytes, expansion: 0, eventsTaken: 0, bytesTaken: 0, expansionTaken: 0 };
}

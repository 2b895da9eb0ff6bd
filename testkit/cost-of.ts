// What a request costs a project's limits, for tests that ask a meter without an intake.

import type { RequestCost } from "../src/base/types.ts";

export function costOf(events: number, bytes: number): RequestCost {
  return { events, bytes, eventsTaken: 0, bytesTaken: 0 };
}

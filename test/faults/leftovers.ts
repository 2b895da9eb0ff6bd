// Finds resources that a gateway still holds after all clients have stopped: a failed request did
// not release them.

import { setTimeout as delay } from "node:timers/promises";
import type { GatewayProcess } from "./scenario.ts";

const gauges = [
  "penstock_inflight_bytes",
  "penstock_requests_inflight",
  "penstock_frames_unacked",
] as const;
/** Longer than the deadline of a request whose client did not wait for the answer. */
const idleMsMax = 25_000;
const pollMs = 50;

/** Waits until all gauges are 0. Returns a description of the gauges that never were. */
export async function leftoversOf(gateway: GatewayProcess): Promise<string[]> {
  const deadline = performance.now() + idleMsMax;
  for (;;) {
    const left = await heldBy(gateway);
    if (left.length === 0 || performance.now() > deadline) return left;
    await delay(pollMs);
  }
}

async function heldBy({ adminUrl }: GatewayProcess): Promise<string[]> {
  const response = await fetch(`${adminUrl}/metrics`);
  const lines = (await response.text()).split("\n");
  return gauges.flatMap((gauge) => {
    const value = lines.find((line) => line.startsWith(`${gauge} `))?.slice(gauge.length + 1);
    return value === "0" ? [] : [`${gauge} is ${value} with no client left`];
  });
}

// Finds resources that a gateway still holds after all clients have stopped.

import { setTimeout as delay } from "node:timers/promises";
import { frameMsMax } from "../../src/gateway/publish/in-flight.ts";
import type { GatewayProcess } from "./scenario.ts";

const framesGauge = "penstock_frames_unacked";
const gauges = ["penstock_inflight_bytes", "penstock_requests_inflight", framesGauge] as const;
const requestMsMax = 25_000;
const pollMs = 50;

/**
 * Polls until all gauges are 0. A frame without an answer counts for as long as the gateway may
 * hold it.
 */
export async function leftoversOf(gateway: GatewayProcess): Promise<string[]> {
  const startedMs = performance.now();
  for (;;) {
    const held = await heldBy(gateway);
    const msMax = requestMsMax + (held.has(framesGauge) ? frameMsMax : 0);
    if (held.size === 0 || performance.now() - startedMs > msMax)
      return [...held].map(([gauge, value]) => `${gauge} is ${value} with no client left`);
    await delay(pollMs);
  }
}

async function heldBy({ adminUrl }: GatewayProcess): Promise<Map<string, string | undefined>> {
  const response = await fetch(`${adminUrl}/metrics`);
  const lines = (await response.text()).split("\n");
  const values = gauges.map((gauge): [string, string | undefined] => [
    gauge,
    lines.find((line) => line.startsWith(`${gauge} `))?.slice(gauge.length + 1),
  ]);
  return new Map(values.filter(([, value]) => value !== "0"));
}

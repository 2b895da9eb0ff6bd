import type { GatewayProcess } from "./scenario.ts";

export async function batchCounts({ adminUrl }: GatewayProcess): Promise<string> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const [stored, parted, frames] = [
    'batches_total{outcome="stored"}',
    'batches_total{outcome="parted"}',
    "batch_frames_sum",
  ].map((name) => text.split(`\npenstock_atomic_${name} `)[1]?.split("\n")[0]);
  return `atomic batches since the gateway's last start: ${stored} stored, ${parted} split, of ${frames} frames`;
}

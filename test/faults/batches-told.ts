// How the frames of a gateway have left, in its own figures: a run with many projects shows nothing
// of atomic batches where none was sent.

import type { GatewayProcess } from "./scenario.ts";

/** In words, for the notes of a run; counted since the gateway was last started. */
export async function batchesTold({ adminUrl }: GatewayProcess): Promise<string> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const [stored, parted, frames] = [
    'batches_total{outcome="stored"}',
    'batches_total{outcome="parted"}',
    "batch_frames_sum",
  ].map((name) => text.split(`\npenstock_atomic_${name} `)[1]?.split("\n")[0]);
  return `atomic batches since the gateway's last start: ${stored} stored, ${parted} parted, of ${frames} frames`;
}

// A ten-minute script that imports a file, for comparison with `penstock import`. It records no
// progress and ends at any error.

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

const [url, key, file] = process.argv.slice(2);
const batchEvents = 10_000;
let batch: unknown[] = [];

async function send(): Promise<void> {
  const body = JSON.stringify({ api_key: key, historical_migration: true, batch });
  batch = [];
  const answer = await fetch(`${url}/batch/`, { method: "POST", body });
  if (!answer.ok) throw new Error(`send a batch: ${answer.status}`);
  await answer.text();
}

for await (const line of createInterface({ input: createReadStream(file!) })) {
  batch.push(JSON.parse(line));
  if (batch.length === batchEvents) await send();
}
if (batch.length > 0) await send();

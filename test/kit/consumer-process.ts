// A consumer in a separate process, so that tests can kill it: `node test/kit/consumer-process.ts
// <NATS url> <durable> <file>`. It appends the uuid of each event to the file and then acknowledges
// the frame. It prints "read" for each frame.

import { appendFileSync } from "node:fs";
import { consume } from "../../src/readers/consumer/consume.ts";

const [servers = "", durable = "", file = ""] = process.argv.slice(2);
for await (const frame of consume({ nats: { servers }, durable, ackWaitMs: 60_000 })) {
  appendFileSync(file, frame.events.map(({ uuid }) => `${uuid}\n`).join(""));
  process.stdout.write("read\n");
  frame.ack();
}

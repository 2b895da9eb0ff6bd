// An effects writer in a separate process, so that tests can kill and freeze it: `node
// test/kit/effects-process.ts <NATS url> <PENSTOCK_EFFECTS_URL> <events of a batch> [<bytes of
// changed rows>]`. It prints a line when a commit begins or ends, for each warning, and for the
// reason of its end.

import { connect } from "@nats-io/transport-node";
import { storeAt, storePlace } from "../../src/readers/effects/store/open.ts";
import { EffectsWriter } from "../../src/readers/effects/writer/effects-writer.ts";

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const [natsUrl = "", effectsUrl = "", batchEvents = "", changedBytes = ""] = process.argv.slice(2);
const log = {
  info: () => {},
  warn: ({ reason }: { reason?: unknown }) => say(`warned: ${String(reason)}`),
  error: () => {},
};
const store = await storeAt(storePlace({ effectsUrl, dataDir: "" }));
const commit = store.commit.bind(store);
store.commit = async (changes) => {
  say("begin");
  await commit(changes);
  say("committed");
};
try {
  await store.open();
} catch (error) {
  say(`refused: ${(error as Error).message}`);
  process.exit(1);
}
const connection = await connect({ servers: natsUrl, maxReconnectAttempts: -1 });
const writer = new EffectsWriter({
  connection,
  store,
  prefix: "penstock",
  log,
  batchEventsMax: Number(batchEvents),
  ...(changedBytes === "" ? {} : { changedBytesMax: Number(changedBytes) }),
});
writer.start();
say("started");
process.once("SIGTERM", async () => {
  await writer.close();
  await store.close();
  await connection.close();
});
await writer.ended().catch((error: unknown) => say(`ended: ${(error as Error).name}`));

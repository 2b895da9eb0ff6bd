// The writer is killed at random points, sometimes together with nats-server or PostgreSQL. Each
// event is applied once.

import type { StorePlace } from "../../../../src/readers/effects/store/open.ts";
import { openedStore } from "../../../kit/effects-databases.ts";
import { apart, undisturbedDump } from "../../../kit/effects-dumps.ts";
import { randomFrames } from "../../../kit/random-events.ts";
import { storeFrames } from "../../../kit/stored-events.ts";
import { startWriterProcess } from "../../../kit/writer-process.ts";
import type { EffectsContext, EffectsScenario } from "../scenario.ts";

const kills = { short: 3, full: 200 };
const framesOfKill = 25;
const batchEvents = 12;
const linesMax = 18;
const delayMsMax = 8;
const shared = { nats: 5, postgres: 7 };
const applyMsMax = 120_000;

export const effectsKilled: EffectsScenario = {
  name: "effects-killed",
  title:
    "the writer of the effects is killed (SIGKILL) at random points, at times with its servers",
  async run(context) {
    const { connection, databases, form, note } = context;
    const place = await databases.newDatabase();
    let said = 0;
    for (let nth = 1; nth <= kills[form]; nth++) said += await oneDeath(context, place, nth);
    const store = await openedStore(place);
    const whole = await openedStore(await databases.newDatabase());
    try {
      const dump = await undisturbedDump(store, { connection }, applyMsMax);
      const expected = await undisturbedDump(whole, { connection }, applyMsMax);
      const { persons, incidents } = await store.reader.totals();
      note(
        `${kills[form]} kills, ${said} begins and ends of commits before them, ${persons} persons`,
      );
      return [...apart(expected, dump), ...(incidents === 0 ? [] : [`${incidents} incidents`])];
    } finally {
      await store.close();
      await whole.close();
    }
  },
};

async function oneDeath(context: EffectsContext, place: StorePlace, nth: number): Promise<number> {
  const { connection, databases, nats, random } = context;
  await storeFrames(connection, randomFrames(random, { count: framesOfKill }));
  const writer = startWriterProcess({ natsUrl: nats.url, place, batchEvents });
  const lines = 1 + Math.floor(random() * linesMax);
  const killed = writer.killedAfter(lines, random() * delayMsMax);
  if (nth % shared.postgres === 0 && databases.postgres !== undefined) {
    await writer.said(/./).catch(() => {});
    await databases.postgres.restart();
  }
  if (nth % shared.nats === 0) {
    await writer.said(/./).catch(() => {});
    await nats.restart();
  }
  return await killed;
}

import { expect, test } from "vitest";
import type { EraseOptions } from "../../../src/commands/erase/erase.ts";
import { dumpOf } from "../../kit/effects-dumps.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { describeWriter, type WriterRig } from "../../readers/effects/writer/writer-kit.ts";
import { addProjects, erased, eventOf, exported, frameOf, messagesIn } from "./erase-kit.ts";

type Step = Parameters<NonNullable<EraseOptions["stepped"]>>[0];

type Ends = readonly (readonly [step: Step, nth: number])[];
const earlier: Ends = [
  ["stored", 1],
  ["noted", 1],
  ["deleted", 2],
  ["people", 1],
];
const later: Ends = [
  ["stored", 2],
  ["noted", 2],
  ["streams", 1],
  ["people", 1],
];
const others = ["bob", "eve", "last"];

function tests(rig: WriterRig, ends: Ends): void {
  const { connection, nats, databases } = rig;

  async function counts(): Promise<unknown> {
    const dump = await rig.undisturbed();
    const usage = dump.filter((line) => line.startsWith('{"table":"usage_daily"'));
    const of = (line: string) => JSON.parse(line) as { events: number; duplicates: number };
    const sum = usage.reduce((all, line) => all + of(line).events - of(line).duplicates, 0);
    const { lines } = await exported(nats.url);
    const ids = lines.map((line) => (JSON.parse(line) as { distinct_id: string }).distinct_id);
    const found = others.map((id) => [id, ids.filter((one) => one === id).length]);
    return { ...Object.fromEntries(found), adas: ids.length - sum, ada: ids.includes("lovelace") };
  }

  test.each(ends)(
    "an erasure killed after the step %s, occurrence %i, is completed by the next",
    async (step, nth) => {
      await addProjects(connection);
      await storeFrames(connection, [
        frameOf([eventOf("lovelace"), eventOf("bob")]),
        frameOf([eventOf("lovelace")]),
        frameOf([eventOf("bob"), eventOf("lovelace"), eventOf("eve")]),
        frameOf([eventOf("lovelace"), eventOf("eve")], { lane: "historical" }),
        frameOf([eventOf("last")]),
      ]);
      const place = await databases.newDatabase();
      await rig.undisturbed({}, place);
      const whole = { bob: 2, eve: 2, last: 1 };
      let left = nth;
      const stepped = (at: Step): void => {
        if (at === step && --left === 0) throw new Error("killed");
      };
      const options = { natsUrl: nats.url, ids: ["lovelace"], place };
      await expect(erased({ ...options, stepped })).rejects.toThrow("killed");
      expect(await counts()).toMatchObject({ ...whole, adas: 0 });
      await erased(options);
      expect(await counts()).toMatchObject({ ...whole, adas: 0, ada: false });
      for (const stream of ["PENSTOCK_LIVE_0", "PENSTOCK_HISTORICAL_0"]) {
        const lines = (await messagesIn(connection, stream)).flatMap((one) => one.lines);
        expect(lines.length).toBe(new Set(lines).size);
        expect(lines.join()).not.toContain("lovelace");
      }
      const reader = await rig.openReader(place);
      expect((await dumpOf(reader)).join()).not.toContain("lovelace");
    },
  );
}

await describeWriter("SQLite", (rig) => tests(rig, earlier));
await describeWriter("PostgreSQL", (rig) => tests(rig, later));

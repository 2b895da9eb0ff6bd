import { readFileSync } from "node:fs";
import type { NatsConnection } from "@nats-io/nats-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { LostLockError } from "../../../src/commands/erase/erasure-log.ts";
import type { EraseStep } from "../../../src/commands/erase/stream-eraser.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { freshStreams } from "../../readers/consumer/consumer-kit.ts";
import { addProjects, erased, eventOf, exported, frameOf, messagesIn } from "./erase-kit.ts";

const nats = await natsServerForFile();
const people = ["ada", "bob", "eve", "dan"] as const;
type Person = (typeof people)[number];
const steps = ["stored", "noted", "deleted"] as const;

async function withFrames(frames: readonly (readonly Person[])[]): Promise<NatsConnection> {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const events = frames.map((ids) => frameOf([...ids.map((id) => eventOf(id)), eventOf("zoe")]));
  await storeFrames(connection, events);
  return connection;
}

async function erasing(id: Person, end?: EraseStep, by: "kill" | "lock" = "kill"): Promise<void> {
  let isDue = end !== undefined;
  const stepped = (step: string): void => {
    if (!isDue || step !== end) return;
    isDue = false;
    throw by === "lock" ? new LostLockError("lost") : new Error("killed");
  };
  const erasure = erased({ natsUrl: nats.url, ids: [id], stepped });
  if (by === "kill") await erasure.catch(({ message }) => expect(message).toBe("killed"));
  else await erasure;
}

function idsIn(lines: readonly string[]): string[] {
  return lines.map((line) => (JSON.parse(line) as { distinct_id: string }).distinct_id).sort();
}

async function expectIds(connection: NatsConnection, ids: readonly string[]): Promise<void> {
  const messages = await messagesIn(connection, "PENSTOCK_LIVE_0");
  expect(idsIn(messages.flatMap(({ lines }) => lines))).toEqual([...ids].sort());
  expect(idsIn((await exported(nats.url)).lines)).toEqual([...ids].sort());
}

test.each(steps)(
  "an erasure killed after the step %s is completed by the next one",
  async (step) => {
    const connection = await withFrames([["ada", "bob", "eve"], []]);
    await erasing("ada");
    await erasing("bob", step);
    await erasing("bob");
    await expectIds(connection, ["eve", "zoe", "zoe"]);
  },
);

test("a killed erasure can be completed after another person's erasure", async () => {
  const connection = await withFrames([["ada", "bob", "eve"]]);
  await erasing("bob", "stored");
  await erasing("ada", "stored");
  await erasing("bob", "stored");
  await erasing("ada");
  await erasing("bob");
  await expectIds(connection, ["eve", "zoe"]);
});

test("an erasure that loses its lock starts again", async () => {
  const connection = await withFrames([["ada", "bob"], ["ada"]]);
  await erasing("ada", "stored", "lock");
  await expectIds(connection, ["bob", "zoe", "zoe"]);
});

test("the receipt of an erasure includes events erased before a lost lock", async () => {
  await withFrames([["ada"], ["ada", "bob"]]);
  let isDue = true;
  const { out, receipt } = await erased({
    natsUrl: nats.url,
    ids: ["ada"],
    stepped: (step) => {
      if (!isDue || step !== "deleted") return;
      isDue = false;
      throw new LostLockError("lost");
    },
  });
  const counts = { deleted: 0, rewritten: 2, events: 2 };
  expect(JSON.parse(readFileSync(receipt, "utf8"))).toMatchObject({
    before: [{ streams: [counts] }],
  });
  expect(out).toContain("2 events found before the lock was lost");
});

test("erasures in any order remove exactly the events of the given persons", async () => {
  const person = fc.constantFrom(...people);
  const end = fc.constantFrom(undefined, ...steps);
  const frames = fc.array(fc.uniqueArray(person, { minLength: 2 }), { minLength: 1, maxLength: 3 });
  const erasures = fc.array(
    fc.tuple(fc.constantFrom(...people.slice(0, 3)), end, fc.constantFrom("kill", "lock")),
    { minLength: 3, maxLength: 6 },
  );
  await fc.assert(
    fc.asyncProperty(frames, erasures, async (stored, all) => {
      const connection = await withFrames(stored);
      for (const [id, at, by] of all) await erasing(id, at, by as "kill" | "lock");
      const gone = new Set(all.map(([id]) => id));
      for (const id of gone) await erasing(id);
      const left = stored.flatMap((ids) => [...ids.filter((id) => !gone.has(id)), "zoe"]);
      await expectIds(connection, left);
    }),
    { numRuns: 4 },
  );
});

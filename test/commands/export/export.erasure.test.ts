import type { NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { freshStreams } from "../../readers/consumer/consumer-kit.ts";
import { addProjects, erased, eventOf, exported, frameOf, project } from "../erase/erase-kit.ts";
import { heldUp } from "./held-up.ts";

const nats = await natsServerForFile();
const padding = "x".repeat(20_000);
const frames = 200;

async function heldUpExport() {
  const read = readConfig({ PENSTOCK_NATS_URL: nats.url }, {});
  if (!read.ok) throw new Error(read.faults.join());
  return await heldUp(read.config, { project, lanes: ["live"] });
}

async function freshProject(): Promise<NatsConnection> {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  return connection;
}

function timesOf(lines: readonly string[], isOther: (id: string) => boolean) {
  const times = new Map<string, number>();
  for (const line of lines) {
    const { distinct_id: id } = JSON.parse(line) as { readonly distinct_id: string };
    if (isOther(id)) times.set(id, (times.get(id) ?? 0) + 1);
  }
  const counted: Record<number, number> = {};
  for (const count of times.values()) counted[count] = (counted[count] ?? 0) + 1;
  return counted;
}

const isBob = (id: string) => id.startsWith("bob-");

test("an export during an erasure writes each other event once", async () => {
  const connection = await freshProject();
  const bobs = Array.from({ length: frames }, (_, nth) =>
    eventOf(`bob-${nth}`, { properties: { padding } }),
  );
  await storeFrames(
    connection,
    bobs.map((bob, nth) =>
      frameOf([eventOf("ada"), ...(nth % 3 === 0 ? [eventOf("cleo")] : []), bob]),
    ),
  );
  await erased({ natsUrl: nats.url, ids: ["cleo"] });
  const { running, said, lines, release } = await heldUpExport();
  await erased({ natsUrl: nats.url, ids: ["ada"] });
  release();
  await running;
  expect(timesOf(lines(), isBob)).toEqual({ 1: frames });
  expect(said.err).not.toMatch(/left PENSTOCK_LIVE_0 during the export/);
  expect(timesOf((await exported(nats.url)).lines, () => true)).toEqual({ 1: frames });
});

test("an export ends when the last messages of its stream are erased", async () => {
  const connection = await freshProject();
  const some = (id: string) =>
    Array.from({ length: 40 }, () => frameOf([eventOf(id, { properties: { padding } })]));
  await storeFrames(connection, [...some("bob-0"), ...some("ada")]);
  const { running, lines, release } = await heldUpExport();
  await erased({ natsUrl: nats.url, ids: ["ada"] });
  release();
  await running;
  expect(timesOf(lines(), isBob)).toEqual({ 40: 1 });
});

// nats-server before 2.12 stores the messages of an atomic batch one by one, and acknowledges only
// the last message.

import { expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { oldestNatsServer } from "../../kit/nats-server.ts";
import {
  linesOf,
  nextTurn,
  type Rig,
  type Settled,
  startRig,
  stored,
} from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();
const projects = Array.from({ length: 40 }, (_, at) => `project-${at}`);
const allStored = projects.map(() => stored);

function sendEach(rig: Rig, text: string): Promise<Settled[]> {
  return Promise.all(
    projects.map((project) => rig.send("live", `${text} ${project}`, { project })),
  );
}

test("every event is stored once after a downgrade of nats-server", async () => {
  const rig = await startRig(server);
  const state = rig.streams.states.of("live", 0);
  expect(await sendEach(rig, "before")).toEqual(allStored);
  expect(rig.heard.batches).toEqual([["stored", projects.length]]);

  server.freeze();
  const underWay = sendEach(rig, "under way");
  await nextTurn();
  await server.kill();
  await vi.waitFor(() => expect(rig.link.connected).toBe(false), 5_000);
  await server.restart({ binary: oldestNatsServer() });
  for (const { outcome } of await underWay) expect(outcome).toMatch(/^(stored|duplicate)$/);
  await rig.streams.check();
  expect(state.takesAtomicBatches).toBe(false);
  expect(await sendEach(rig, "alone")).toEqual(allStored);

  state.takesAtomicBatches = true;
  rig.heard.batches.length = 0;
  const rounds: string[] = [];
  while (rig.heard.batches.length === 0) {
    rounds.push(`round ${rounds.length}:`);
    expect(await sendEach(rig, rounds.at(-1)!)).toEqual(allStored);
  }
  expect(rig.heard.batches).toEqual([["parted", projects.length]]);

  const lines = linesOf(await rig.stored("live"));
  for (const text of ["before", "under way", "alone", ...rounds]) {
    const own = lines.filter((line) => line.startsWith(`${text} `));
    expect(own.sort()).toEqual(projects.map((project) => `${text} ${project}`).sort());
  }
  await rig.close();
});

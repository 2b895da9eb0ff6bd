import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, expect, test, vi } from "vitest";
import { filtered } from "../../kit/filtered-link.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  linesOf,
  liveStream,
  nextTurn,
  type Rig,
  type Settled,
  startRig,
  stored,
} from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();
afterEach(() => server.thaw());

const window = 8;
const projects = Array.from({ length: 100 }, (_, at) => `project-${at}`);
const allStored = projects.map(() => stored);
const linesOfEach = projects.map((project) => `line ${project}`);

async function startNarrow(ackTimeoutMs?: number) {
  const alone = { sent: 0, unackedMax: 0 };
  const rig: Rig = await startRig(server, {
    framesUnackedMax: window,
    ...(ackTimeoutMs === undefined ? {} : { ackTimeoutMs }),
    through: (link) =>
      filtered(link, (message) => {
        if (message.includes("Nats-Batch-Id")) return true;
        alone.sent++;
        alone.unackedMax = Math.max(alone.unackedMax, alone.sent - rig.heard.framesAcked);
        return true;
      }),
  });
  return { rig, alone };
}

function sendEach(rig: Rig, withinMs = 10_000): Promise<Settled[]> {
  return Promise.all(
    projects.map((project) => rig.send("live", `line ${project}`, { project, withinMs })),
  );
}

test("the frames of a rejected batch are sent alone in order, within the window", async () => {
  const { rig, alone } = await startNarrow();
  const jsm = await jetstreamManager(rig.link.connection);
  await jsm.streams.update(liveStream(rig), { allow_atomic: false });
  expect(await sendEach(rig)).toEqual(allStored);
  expect(rig.heard.batches).toEqual([["parted", projects.length]]);
  expect(alone).toEqual({ sent: projects.length, unackedMax: window });
  expect(linesOf(await rig.stored("live"))).toEqual(linesOfEach);
  await rig.close();
});

test("the frames of an unanswered batch are sent alone, and the batch is counted once", async () => {
  const { rig, alone } = await startNarrow(1_000);
  server.freeze();
  const sends = sendEach(rig);
  await vi.waitFor(() => expect(rig.heard.batches).toHaveLength(1), 5_000);
  await nextTurn();
  expect(alone).toEqual({ sent: window, unackedMax: window });
  expect(rig.heard.failures).toEqual(["timeout"]);
  server.thaw();
  for (const { outcome } of await sends) expect(outcome).toMatch(/^(stored|duplicate)$/);
  expect(linesOf(await rig.stored("live")).toSorted()).toEqual(linesOfEach.toSorted());
  await rig.close();
});

test("the frames of a failed batch that wait for the window become unknown at their deadline", async () => {
  const { rig, alone } = await startNarrow(200);
  server.freeze();
  const unknown: Settled = { outcome: "unknown", code: "timeout" };
  // The deadline is between two ack timeouts, so that no frame is due to be sent again at that
  // moment.
  expect(await sendEach(rig, 500)).toEqual(projects.map(() => unknown));
  const { sent } = alone;
  server.thaw();
  await rig.streams.check();
  expect(await rig.send("live", "after", { project: "after" })).toEqual(stored);
  expect(alone.sent).toBe(sent + 1);
  await rig.close();
});

test("the frames of a batch lost in a reconnect are sent alone, within the window", async () => {
  const { rig, alone } = await startNarrow(60_000);
  server.freeze();
  const sends = sendEach(rig);
  await nextTurn();
  await server.kill();
  await vi.waitFor(() => expect(rig.link.connected).toBe(false), 5_000);
  await server.restart();
  for (const { outcome } of await sends) expect(outcome).toMatch(/^(stored|duplicate)$/);
  expect(rig.heard.failures[0]).toBe("disconnected");
  expect(rig.heard.batches).toEqual([["parted", projects.length]]);
  expect(alone.unackedMax).toBeLessThanOrEqual(window);
  expect(linesOf(await rig.stored("live")).toSorted()).toEqual(linesOfEach.toSorted());
  await rig.close();
});

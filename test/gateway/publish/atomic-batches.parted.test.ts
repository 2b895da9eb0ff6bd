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

const ackTimeoutMs = 60_000;

async function startNarrow() {
  const alone = { sent: 0, unackedMax: 0 };
  let aheadMs = 0;
  const rig: Rig = await startRig(server, {
    framesUnackedMax: window,
    ackTimeoutMs,
    monotonicMs: () => performance.now() + aheadMs,
    through: (link) =>
      filtered(link, (message) => {
        if (message.includes("Nats-Batch-Id")) return true;
        alone.sent++;
        alone.unackedMax = Math.max(alone.unackedMax, alone.sent - rig.heard.framesAcked);
        return true;
      }),
  });
  const pass = (ms: number): void => {
    aheadMs += ms;
  };
  return { rig, alone, pass };
}

function sendEach(rig: Rig, withinMs = 2 * ackTimeoutMs): Promise<Settled[]> {
  return Promise.all(
    projects.map((project) => rig.send("live", `line ${project}`, { project, withinMs })),
  );
}

test("the frames of a rejected batch are sent one by one, in order", async () => {
  const { rig, alone } = await startNarrow();
  const jsm = await jetstreamManager(rig.link.connection);
  await jsm.streams.update(liveStream(rig), { allow_atomic: false });
  expect(await sendEach(rig)).toEqual(allStored);
  expect(rig.heard.batches).toEqual([["parted", projects.length]]);
  expect(alone).toEqual({ sent: projects.length, unackedMax: window });
  expect(linesOf(await rig.stored("live"))).toEqual(linesOfEach);
  await rig.close();
});

test("the frames of an unanswered batch are sent one by one", async () => {
  const { rig, alone, pass } = await startNarrow();
  server.freeze();
  const sends = sendEach(rig);
  await nextTurn();
  pass(ackTimeoutMs);
  await vi.waitFor(() => expect(rig.heard.batches).toHaveLength(1), 5_000);
  await nextTurn();
  expect(alone).toEqual({ sent: window, unackedMax: window });
  expect(rig.heard.failures).toEqual(["timeout"]);
  server.thaw();
  for (const { outcome } of await sends) expect(outcome).toMatch(/^(stored|duplicate)$/);
  expect(linesOf(await rig.stored("live")).toSorted()).toEqual(linesOfEach.toSorted());
  await rig.close();
});

test("waiting frames of a failed batch become unknown at their deadline", async () => {
  const { rig, alone, pass } = await startNarrow();
  server.freeze();
  // No ack timeout ends at the deadline, so that nothing is sent at that moment.
  const sends = sendEach(rig, 1.5 * ackTimeoutMs);
  await nextTurn();
  pass(ackTimeoutMs);
  await vi.waitFor(() => expect(alone.sent).toBe(window), 5_000);
  pass(0.5 * ackTimeoutMs);
  const unknown: Settled = { outcome: "unknown", code: "timeout" };
  expect(await sends).toEqual(projects.map(() => unknown));
  expect(alone.sent).toBe(window);
  server.thaw();
  await rig.streams.check();
  expect(await rig.send("live", "after", { project: "after" })).toEqual(stored);
  expect(alone.sent).toBe(window + 1);
  await rig.close();
});

test("the frames of a batch lost in a reconnect are sent one by one", async () => {
  const { rig, alone } = await startNarrow();
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

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { heldUp } from "./held-up.ts";

const gateway = await gatewayForFile();
const { id: projectId } = await gateway.project();
const stream = "PENSTOCK_HISTORICAL_0";
const frames = 300;
const padding = "x".repeat(20_000);

async function connected() {
  const options = { maxReconnectAttempts: -1, reconnectTimeWait: 100 };
  const connection = await connect({ servers: gateway.nats.url, ...options });
  onTestFinished(() => connection.close());
  return { connection, manager: await jetstreamManager(connection) };
}

beforeEach(async () => {
  const { connection, manager } = await connected();
  await manager.streams.purge(stream);
  await storeFrames(
    connection,
    Array.from({ length: frames }, (_, nth) => ({
      ...({ lane: "historical", projectId, messageId: `${Date.now()}-${nth}` } as const),
      events: [{ uuid: `${nth}`, distinctId: "d", receivedAtMs: nth, properties: { padding } }],
    })),
  );
});

async function heldUpExport() {
  return await heldUp(gateway.config, { project: projectId, lanes: ["historical"] });
}

test("an export loses nothing when the server restarts", async () => {
  const { running, lines, release } = await heldUpExport();
  await gateway.nats.restart();
  release();
  await running;
  expect(lines().length).toBe(frames);
});

test("an export reports messages that expire while it reads the stream", async () => {
  const { manager } = await connected();
  const { running, said, lines, release } = await heldUpExport();
  await manager.streams.purge(stream, { keep: 5 });
  release();
  await running;
  expect(lines().length).toBeLessThan(frames);
  expect(said.err).toMatch(/messages \d+ to \d+ left PENSTOCK_HISTORICAL_0 during the export/);
});

test("an export reports once that all unread messages were removed", async () => {
  const { manager } = await connected();
  const { running, said, release } = await heldUpExport();
  await manager.streams.purge(stream);
  release();
  await running;
  expect(said.err.match(/left PENSTOCK_HISTORICAL_0 during the export/g)).toHaveLength(1);
});

test("an export fails when its stream is recreated", async () => {
  const { manager } = await connected();
  const { running, release } = await heldUpExport();
  const { config } = await manager.streams.info(stream);
  await manager.streams.delete(stream);
  // Succeeds even if the gateway has already recreated the stream.
  await manager.streams.add(config);
  release();
  await expect(running).rejects.toThrow("was replaced while it was read");
});

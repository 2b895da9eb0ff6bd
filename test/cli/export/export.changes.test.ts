// What happens to a stream and its server while an export is held up by a slow reader.

import { once } from "node:events";
import { Writable } from "node:stream";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { exportEvents } from "../../../src/cli/export/export.ts";
import { commandWorld } from "../../../testkit/command-context.ts";
import { gatewayForFile } from "../../../testkit/for-file.ts";
import { storeFrames } from "../../../testkit/stored-events.ts";

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

interface SlowExport {
  readonly running: Promise<void>;
  readonly said: { readonly err: string };
  /** How many events were written. */
  readonly lines: () => number;
  release(): void;
}

/** Runs until something is written, and then no further until it is released. */
async function heldUp(): Promise<SlowExport> {
  const { context, said } = commandWorld();
  let [text, go] = ["", (): void => {}];
  const begun = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _, done) {
      text += chunk.toString();
      if (go === released) return done();
      go = done;
      this.emit("held");
    },
  });
  function released(): void {}
  const held = once(begun, "held");
  const options = { project: projectId, lanes: ["historical"] as const };
  const running = exportEvents(gateway.config, options, { ...context, stdout: begun });
  running.catch(() => {});
  await Promise.race([held, running]);
  const release = () => {
    const next = go;
    go = released;
    next();
  };
  return { running, said, lines: () => text.split("\n").length - 1, release };
}

test("a server that is restarted costs nothing", async () => {
  const { running, lines, release } = await heldUp();
  await gateway.nats.restart();
  release();
  await running;
  expect(lines()).toBe(frames);
});

test("messages that leave the stream while it is read are told", async () => {
  const { manager } = await connected();
  const { running, said, lines, release } = await heldUp();
  await manager.streams.purge(stream, { keep: 5 });
  release();
  await running;
  expect(lines()).toBeLessThan(frames);
  expect(said.err).toMatch(/messages \d+ to \d+ left PENSTOCK_HISTORICAL_0 while it was read/);
});

test("a stream that is made anew while it is read ends the export", async () => {
  const { manager } = await connected();
  const { running, release } = await heldUp();
  const { config } = await manager.streams.info(stream);
  await manager.streams.delete(stream);
  // The gateway may have been quicker.
  await manager.streams.add(config);
  release();
  await expect(running).rejects.toThrow("is not the one that it was");
});

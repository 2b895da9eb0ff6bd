import path from "node:path";
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { EffectsWriter } from "../../../src/readers/effects/writer/effects-writer.ts";
import { openedStore } from "../../kit/effects-databases.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { oldestNatsServer, startNatsServer, untilStreamsGone } from "../../kit/nats-server.ts";
import { silent, temporaryFolder } from "../../kit/processes.ts";
import { runCommand } from "../../kit/run-command.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();
const live = "PENSTOCK_LIVE_0";

async function rigWithEffects(on = server) {
  const rig = await streamRig(on);
  const run = (...args: string[]) => runCommand(rig.env, args);
  const file = path.join(rig.env["PENSTOCK_DATA_DIR"]!, "effects.sqlite");
  const connection = await connect({ servers: on.url });
  onTestFinished(() => connection.close());
  /** Runs the effects until their database has everything. */
  const apply = async () => {
    const store = await openedStore({ kind: "sqlite", file });
    const writer = new EffectsWriter({ connection, store, prefix: "penstock", log: silent });
    writer.start();
    const { state } = await rig.manager.streams.info(live);
    const read = async () =>
      (await store.reader.positions()).find(({ stream }) => stream === live)?.sequence;
    await expect.poll(read).toBe(state.last_seq);
    await writer.close();
    await store.close();
  };
  return { ...rig, run, file, apply };
}

test("stream purge, stream set and project remove change nothing if the host has no effects database, unless --no-effects is set", async () => {
  const { run, file, publish, messages, manager } = await rigWithEffects();
  await run("project", "add", "shop");
  await publish("shop");
  for (const command of [
    ["stream", "purge", "live", "--yes"],
    ["stream", "set", "live", "--max-age", "1h"],
    ["project", "remove", "shop", "--yes"],
  ]) {
    const { fault, audit } = await run(...command);
    expect(fault).toContain(
      `${command[0]} ${command[1]}: cannot check what the effects have read in ${file}: the file does not exist. Nothing was changed. Set PENSTOCK_EFFECTS_URL`,
    );
    expect(audit).toEqual([]);
  }
  expect(await messages()).toBe(1);
  expect((await run("project", "list")).out).toMatch(/^shop +enabled/m);
  expect((await manager.streams.info(live)).config.max_age).toBeGreaterThan(3_600e9);
  // Nothing can be lost, so no reader is checked.
  expect((await run("stream", "set", "live", "--max-age", "20d")).fault).toBeUndefined();
  expect((await run("stream", "purge", "live", "--yes", "--no-effects")).fault).toBeUndefined();
  expect(await messages()).toBe(0);
});

test("stream purge removes what the effects database has read, and nothing that it has not read", async () => {
  const { run, publish, messages, apply } = await rigWithEffects();
  const purge = async (...more: string[]) =>
    (await run("stream", "purge", "live", "--yes", ...more)).fault;
  for (let count = 0; count < 3; count++) await publish("shop");
  await apply();
  for (let count = 0; count < 2; count++) await publish("shop");
  expect(await purge()).toContain(`the effects database has not read 2 messages of ${live}`);
  expect(await messages()).toBe(5);
  expect(await purge("--to", "3")).toBeUndefined();
  expect(await messages()).toBe(2);
  expect(await purge("--to", "4")).toContain("the effects database has not read 1 message");
  await apply();
  expect(await purge()).toBeUndefined();
  expect(await messages()).toBe(0);
});

test("an effects database that has no position in the stream has read none of its messages", async () => {
  const { run, publish, messages, file } = await rigWithEffects();
  await publish("shop");
  await (await openedStore({ kind: "sqlite", file })).close();
  const purged = await run("stream", "purge", "live", "--yes");
  expect(purged.fault).toContain("the effects database has not read 1 message");
  expect((await run("stream", "purge", "live", "--yes", "--unread")).fault).toBeUndefined();
  expect(await messages()).toBe(0);
});

test("without their database, running effects count as having read only what they had before their start", async () => {
  const { stream, publish, manager, js } = await rigWithEffects();
  for (let count = 0; count < 3; count++) await publish("shop");
  const name = "penstock_effects_test";
  // Like the consumer of the effects (src/readers/stream/pull.ts).
  await manager.consumers.add(live, {
    name,
    ack_policy: AckPolicy.None,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: 2,
  });
  const reading = await js.consumers.get(live, name);
  for (let count = 0; count < 2; count++) await reading.next();
  const purged = await stream(["purge", "live", "--yes"]);
  expect(purged.fault).toContain(`${name} has not read 2 messages of ${live}`);
  expect((await stream(["purge", "live", "--to", "1", "--yes"])).fault).toBeUndefined();
});

test("a position of the effects in an earlier stream of the same name does not count", async () => {
  const { run, publish, messages, manager, ensure, apply } = await rigWithEffects();
  for (let count = 0; count < 3; count++) await publish("shop");
  await apply();
  await manager.streams.delete(live);
  await ensure();
  for (let count = 0; count < 2; count++) await publish("shop");
  const purged = await run("stream", "purge", "live", "--yes");
  expect(purged.fault).toContain(`the effects database has not read 2 messages of ${live}`);
  expect(await messages()).toBe(2);
});

test("a position of the effects after the end of a restored backup does not count", async () => {
  // This nats-server restores the time of creation too.
  const oldest = await startNatsServer({ binary: oldestNatsServer() });
  onTestFinished(() => oldest.remove());
  const { run, publish, messages, manager, apply } = await rigWithEffects(oldest);
  for (let count = 0; count < 2; count++) await publish("shop");
  const folder = path.join(temporaryFolder(), "backup");
  expect((await run("stream", "backup", folder, "live")).fault).toBeUndefined();
  for (let count = 0; count < 3; count++) await publish("shop");
  await apply();
  const { created } = await manager.streams.info(live);
  await manager.streams.delete(live);
  await untilStreamsGone(oldest, [live]);
  expect((await run("stream", "restore", folder, "live")).fault).toBeUndefined();
  expect((await manager.streams.info(live)).created).toBe(created);
  for (let count = 0; count < 3; count++) await publish("shop");
  const purged = await run("stream", "purge", "live", "--yes");
  expect(purged.fault).toContain(`the effects database has not read 3 messages of ${live}`);
  expect(await messages()).toBe(5);
  expect((await run("stream", "purge", "live", "--to", "2", "--yes")).fault).toBeUndefined();
});

test("stream purge and stream set of rejected events do not need the effects database", async () => {
  const { run, messages, manager, js } = await rigWithEffects();
  await run("project", "add", "shop");
  const { config } = await manager.streams.info(live);
  const rejected = "PENSTOCK_REJECTED_0";
  await manager.streams.add({ ...config, name: rejected, subjects: ["penstock.rejected.0.>"] });
  onTestFinished(async () => void (await manager.streams.delete(rejected)));
  await js.publish("penstock.rejected.0.shop", "{}\n");
  expect((await run("stream", "set", "rejected", "--max-age", "1h")).fault).toBeUndefined();
  expect((await manager.streams.info(rejected)).config.max_age).toBe(3_600e9);
  expect((await run("stream", "purge", "rejected", "--yes")).fault).toBeUndefined();
  expect(await messages(rejected)).toBe(0);
});

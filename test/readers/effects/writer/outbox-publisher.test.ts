import path from "node:path";
import { DiscardPolicy, jetstreamManager } from "@nats-io/jetstream";
import type { Msg } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import type { OutboxRow } from "../../../../src/readers/effects/types.ts";
import { OutboxPublisher } from "../../../../src/readers/effects/writer/outbox-publisher.ts";
import { startNatsServer } from "../../../kit/nats-server.ts";
import { silent, temporaryFolder } from "../../../kit/processes.ts";
import { commitOf } from "../store/row-kit.ts";

async function parts() {
  const nats = await startNatsServer({ syncInterval: "2m" });
  onTestFinished(() => nats.remove());
  const connection = await connect({ servers: nats.url });
  onTestFinished(() => connection.close());
  const manager = await jetstreamManager(connection);
  const store = new SqliteStore({ file: path.join(temporaryFolder(), "effects.sqlite") });
  await store.open();
  onTestFinished(() => store.close());
  return { connection, manager, store };
}

test("outbox rows are published under their ids and then removed", async () => {
  const { connection, manager, store } = await parts();
  await manager.streams.add({ name: "KEPT", subjects: ["penstock.spike.kept"] });
  const heard: Msg[] = [];
  connection.subscribe("penstock.spike.>", { callback: (_, message) => void heard.push(message) });
  await connection.flush();
  const outbox: OutboxRow[] = ["kept", "other"].map((project) => {
    return { messageId: `spike/${project}`, subject: `penstock.spike.${project}`, json: "{}" };
  });
  await store.commit(commitOf(0, { outbox }));
  const publisher = new OutboxPublisher({ connection, store, log: silent });
  await expect.poll(() => store.outbox(10, 0)).toEqual([]);
  // Commits the same row again, as after a crash between publishing and removing.
  await store.commit(commitOf(1, { outbox }));
  publisher.ask();
  await expect.poll(() => store.outbox(10, 0)).toEqual([]);
  await publisher.close();
  const ids = heard.map(({ headers }) => headers?.get("Nats-Msg-Id")).sort();
  expect(ids).toEqual(["spike/kept", "spike/kept", "spike/other", "spike/other"]);
  expect((await manager.streams.info("KEPT")).state.messages).toBe(1);
});

test("a refused outbox row is retried without blocking other rows", async () => {
  const { connection, manager, store } = await parts();
  const full = { name: "FULL", subjects: ["penstock.spike.full"], discard: DiscardPolicy.New };
  await manager.streams.add({ ...full, max_msgs: 1 });
  await manager.streams.add({ name: "KEPT", subjects: ["penstock.spike.kept"] });
  await connection.request("penstock.spike.full", "");
  let sent = 0;
  connection.subscribe("penstock.spike.full", { callback: () => void sent++ });
  await connection.flush();
  const row = (project: string, n: number): OutboxRow => {
    return { messageId: `${project}/${n}`, subject: `penstock.spike.${project}`, json: "{}" };
  };
  const refused = Array.from({ length: 130 }, (_, n) => row("full", n));
  await store.commit(commitOf(0, { outbox: [...refused, row("kept", 0)] }));
  const said: object[] = [];
  const log = { warn: (fields: object) => void said.push(fields) };
  const publisher = new OutboxPublisher({ connection, store, log, rowsMax: 120 });
  onTestFinished(() => publisher.close());
  const messagesOf = async (stream: string) => (await manager.streams.info(stream)).state.messages;
  await expect.poll(() => messagesOf("KEPT")).toBe(1);
  expect(said).toContainEqual({ dropped: 11, rowsMax: 120 });
  await expect.poll(async () => (await store.outbox(200, 0)).length).toBe(119);
  const before = sent;
  await store.commit(commitOf(1, { outbox: [row("kept", 1)] }));
  publisher.ask();
  await expect.poll(() => messagesOf("KEPT")).toBe(2);
  expect(sent).toBe(before);
  await manager.streams.update("FULL", { max_msgs: 1_000 });
  await expect.poll(() => store.outbox(200, 0), { timeout: 3_000 }).toEqual([]);
  expect(await messagesOf("FULL")).toBe(120);
});

import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { runCommand } from "../../kit/run-command.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();

async function emptyServer() {
  const other = await startNatsServer();
  onTestFinished(() => other.remove());
  return other.url;
}

/** Restores a backup with one stream. */
async function restored(url: string, folder: string) {
  const env = { PENSTOCK_NATS_URL: url, PENSTOCK_DATA_DIR: temporaryFolder() };
  return await runCommand(env, ["stream", "restore", folder]);
}

async function contentOf(url: string, stream: string) {
  const connection = await connect({ servers: url });
  const consumer = await jetstream(connection).consumers.get(stream);
  const { state } = await (await jetstreamManager(connection)).streams.info(stream);
  const found: string[] = [];
  for await (const message of await consumer.fetch({ max_messages: state.messages })) {
    found.push(`${message.seq} ${message.subject} ${message.string()}`);
    if (message.info.pending === 0) break;
  }
  await connection.close();
  return found;
}

describe("stream backup and restore", () => {
  test("copy the limits, the projects, their rules, and every message that was acknowledged before the backup, even under load", async () => {
    const { stream, env } = await streamRig(server);
    await runCommand(env, ["project", "add", "shop", "--key", "phc_shop"]);
    const rulesFile = path.join(temporaryFolder(), "rules.yaml");
    const rules = "rules: [{ name: no-x, match: { event: x }, drop: true }]\n";
    writeFileSync(rulesFile, rules);
    expect((await runCommand(env, ["rules", "apply", "shop", rulesFile])).fault).toBeUndefined();
    await stream(["set", "live", "--max-age", "2d"]);
    const connection = await connect({ servers: server.url });
    const js = jetstream(connection);
    const acked: string[] = [];
    let isOver = false;
    const filler = "x".repeat(20_000);
    const load = async (sender: number) => {
      for (let count = 0; !isOver; count++) {
        const text = `${sender}-${count} ${filler}`;
        const { seq } = await js.publish("penstock.live.0.shop", text);
        acked.push(`${seq} penstock.live.0.shop ${text}`);
      }
    };
    const senders = Promise.all([0, 1, 2, 3].map(load));
    while (acked.length < 200) await new Promise((resolve) => setImmediate(resolve));
    const before = [...acked];
    const folder = path.join(temporaryFolder(), "backup");
    const written = await stream(["backup", folder]);
    isOver = true;
    await senders;
    await connection.close();
    expect(written.fault).toBeUndefined();
    expect(written.out).toContain("KV_penstock_projects: ");
    const url = await emptyServer();
    const back = await restored(url, folder);
    expect(back.fault).toBeUndefined();
    expect(back.audit).toMatchObject([
      { change: "stream restore", result: "done", stream: "KV_penstock_projects" },
      { stream: "KV_penstock_rules" },
      { stream: "PENSTOCK_HISTORICAL_0" },
      { stream: "PENSTOCK_LIVE_0" },
    ]);
    const content = await contentOf(url, "PENSTOCK_LIVE_0");
    const ledger = new Set(acked);
    expect(before.filter((one) => !content.includes(one))).toEqual([]);
    expect(content.filter((one) => !ledger.has(one))).toEqual([]);
    const there = { PENSTOCK_NATS_URL: url };
    expect((await runCommand(there, ["project", "list"])).out).toContain("phc_shop");
    expect((await runCommand(there, ["rules", "show", "shop"])).out).toBe(rules);
    const shown = JSON.parse((await runCommand(there, ["stream", "show", "live", "--json"])).out);
    expect(shown).toMatchObject([{ age_max_seconds: 172_800, set_by_command: ["max_age"] }]);
  });

  test("refuse an existing stream or folder, and change nothing", async () => {
    const { stream, publish, messages } = await streamRig(server);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    await publish("shop");
    expect((await stream(["restore", folder])).fault).toContain(
      "the stream PENSTOCK_LIVE_0 exists, and a restore never replaces one",
    );
    expect(await messages()).toBe(2);
    expect((await stream(["backup", folder, "live"])).fault).toContain("PENSTOCK_LIVE_0 exists");
  });

  test.each([
    [
      "a data file with another byte",
      (folder: string) => appendFileSync(path.join(folder, "stream.tar.s2"), "x"),
      "is damaged: its size or checksum differs",
    ],
    [
      "another format version",
      (folder: string) => {
        const file = path.join(folder, "backup.json");
        const manifest = JSON.parse(readFileSync(file, "utf8"));
        manifest.penstock.version = 2;
        writeFileSync(file, JSON.stringify(manifest));
      },
      "has format version 2, and this release reads version 1",
    ],
    [
      "a missing manifest, as of an interrupted backup",
      (folder: string) => rmSync(path.join(folder, "backup.json")),
      "has no backup.json: the backup is incomplete",
    ],
    [
      "a missing data file",
      (folder: string) => rmSync(path.join(folder, "stream.tar.s2")),
      "cannot read",
    ],
  ])("refuse %s, before anything is restored", async (_, damage, said) => {
    const { stream, publish } = await streamRig(server);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    await stream(["backup", folder]);
    damage(path.join(folder, "PENSTOCK_LIVE_0"));
    const url = await emptyServer();
    expect((await restored(url, folder)).fault).toContain(said);
    const connection = await connect({ servers: url });
    const names = await (await jetstreamManager(connection)).streams.names().next();
    expect(names).toEqual([]);
    await connection.close();
  });
});

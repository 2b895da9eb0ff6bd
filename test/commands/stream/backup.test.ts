import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { nanosPerMs } from "../../../src/platform/nats/api.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  findNatsServer,
  oldestNatsServer,
  startNatsServer,
  untilStreamsGone,
} from "../../kit/nats-server.ts";
import { ended, temporaryFolder } from "../../kit/processes.ts";
import { runCommand } from "../../kit/run-command.ts";
import { upOn } from "../../kit/up-process.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();

async function emptyServer() {
  const other = await startNatsServer();
  onTestFinished(() => other.remove());
  return other.url;
}

async function restored(url: string, folder: string) {
  const env = { PENSTOCK_NATS_URL: url, PENSTOCK_DATA_DIR: temporaryFolder() };
  return await runCommand(env, ["stream", "restore", folder]);
}

function changeJson(file: string, change: (value: ReturnType<typeof JSON.parse>) => void) {
  const value = JSON.parse(readFileSync(file, "utf8"));
  change(value);
  writeFileSync(file, JSON.stringify(value));
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
  test("copy every message that was acknowledged before the backup", async () => {
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
      { change: "stream restore", result: "done", stream: "KV_penstock_limits" },
      { stream: "KV_penstock_projects" },
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

  test("report an error of the folder as such, whatever its name is", async () => {
    const { stream } = await streamRig(server);
    const file = path.join(temporaryFolder(), "consumer");
    writeFileSync(file, "");
    const { fault, err } = await stream(["backup", path.join(file, "backup"), "live"]);
    expect(fault).toContain("ENOTDIR");
    expect(err).not.toContain("without its consumers");
  });

  test("start the nats-server of a data folder if no Penstock runs on it", async () => {
    const { stream, publish, env } = await streamRig(server);
    await runCommand(env, ["project", "add", "embedded", "--key", "phc_embedded"]);
    await publish("embedded");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder])).fault).toBeUndefined();
    const dataDir = path.join(temporaryFolder(), "data");
    const own = {
      PENSTOCK_DATA_DIR: dataDir,
      PENSTOCK_NATS_SERVER: findNatsServer(),
      PENSTOCK_STREAM_BYTES_MAX: env["PENSTOCK_STREAM_BYTES_MAX"]!,
    };
    const none = await runCommand(own, ["stream", "backup", path.join(folder, "none")]);
    expect(none.fault).toContain("cannot find NATS");
    const absent = await runCommand(own, ["stream", "restore", path.join(folder, "absent")]);
    expect(absent.fault).toContain("ENOENT");
    expect(existsSync(dataDir)).toBe(false);

    const back = await runCommand(own, ["stream", "restore", folder]);
    expect(back.fault).toBeUndefined();
    expect(back.err).toContain(`starting nats-server on the data folder ${dataDir}`);
    expect((await runCommand(own, ["project", "list"])).fault).toContain("cannot find NATS");
    const again = await runCommand(own, [
      "stream",
      "backup",
      path.join(temporaryFolder(), "again"),
    ]);
    expect(again.out).toContain("PENSTOCK_LIVE_0: 1 message up to 1,");

    const { child, url } = await upOn(dataDir);
    const event = JSON.stringify({ api_key: "phc_embedded", event: "e", distinct_id: "d" });
    const answer = await fetch(`${url}/capture/`, { method: "POST", body: event });
    expect(answer.status).toBe(200);
    const running = await runCommand(own, ["stream", "restore", folder, "live"]);
    expect(running.fault).toBeUndefined();
    expect(running.out).toContain("; 1 message stored since");
    child.kill("SIGTERM");
    expect(await ended(child)).toBe(0);
  });

  test.each([
    ["newest", undefined],
    ["oldest", oldestNatsServer],
  ] as const)(
    "a restore that is stopped in a stream is completed by the next run, on the %s nats-server",
    async (_, binary) => {
      const on = await startNatsServer(binary === undefined ? {} : { binary: binary() });
      onTestFinished(() => on.remove());
      const { stream, publish, js, ensure, manager } = await streamRig(on);
      await publish("shop", "historical");
      // Many chunks, as JetStream's compression does not shorten them.
      for (let count = 0; count < 20; count++)
        await js.publish("penstock.live.0.shop", randomBytes(500_000));
      const folder = path.join(temporaryFolder(), "backup");
      expect((await stream(["backup", folder])).fault).toBeUndefined();
      const content = await contentOf(on.url, "PENSTOCK_LIVE_0");
      for (const name of ["PENSTOCK_LIVE_0", "PENSTOCK_HISTORICAL_0"])
        await manager.streams.delete(name);
      await untilStreamsGone(on, ["PENSTOCK_LIVE_0", "PENSTOCK_HISTORICAL_0"]);
      const env = { PENSTOCK_NATS_URL: on.url, PENSTOCK_DATA_DIR: temporaryFolder() };
      const { context, said, stop } = commandWorld(env);
      const request = NatsConnectionImpl.prototype.request;
      let chunks = 0;
      const spy = vi.spyOn(NatsConnectionImpl.prototype, "request");
      onTestFinished(() => spy.mockRestore());
      spy.mockImplementation(async function (this: NatsConnectionImpl, subject, ...more) {
        const isLive = subject.startsWith("$JS.SNAPSHOT.RESTORE.PENSTOCK_LIVE_0");
        if (isLive && ++chunks === 40) stop.abort();
        return await request.call(this, subject, ...more);
      });
      const stopped = commandLine({ ...context }).parseAsync(["stream", "restore", folder], {
        from: "user",
      });
      // The historical stream is restored first.
      await expect(stopped).rejects.toThrow(
        "stream restore: PENSTOCK_LIVE_0: stopped. Not restored: PENSTOCK_LIVE_0. Run the command again",
      );
      expect(said.err).toContain('"result":"failed"');
      if (binary === undefined) {
        await vi.waitFor(async () =>
          expect((await manager.streams.info("PENSTOCK_LIVE_0")).state.last_seq).toBeGreaterThan(0),
        );
        await expect(ensure()).rejects.toThrow(
          "its restore is not complete: run `penstock stream restore` again",
        );
        const other = path.join(temporaryFolder(), "other");
        expect((await stream(["backup", other])).fault).toContain(
          "stream backup: the restore of PENSTOCK_LIVE_0 is not complete",
        );
      }
      const again = await restored(on.url, folder);
      expect(again.fault).toBeUndefined();
      expect(again.err.includes("removed the part that an interrupted restore has left")).toBe(
        binary === undefined,
      );
      expect(again.out).toContain("PENSTOCK_HISTORICAL_0: unchanged: it already has the messages");
      expect(await contentOf(on.url, "PENSTOCK_LIVE_0")).toEqual(content);
      await ensure();
      expect(await publish("shop")).toBe(21);
      const lane = await runCommand(env, ["stream", "restore", folder, "live"]);
      expect([lane.fault, lane.audit, lane.out]).toEqual([
        undefined,
        [],
        "PENSTOCK_LIVE_0: unchanged: it already has the messages of the backup; 1 message stored since\n",
      ]);
      expect((await runCommand(env, ["stream", "restore", folder, "lve"])).fault).toContain(
        `${folder} contains no backup of lve: it contains `,
      );
    },
    60_000,
  );

  test("a restore removes nothing while another restore fills the stream", async () => {
    const { stream, publish, manager, js } = await streamRig(server);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    await manager.streams.update("PENSTOCK_LIVE_0", {
      subjects: ["penstock_restoring.PENSTOCK_LIVE_0"],
    });
    let isOver = false;
    const filling = (async () => {
      while (!isOver) await js.publish("penstock_restoring.PENSTOCK_LIVE_0", "{}");
    })();
    const { fault, audit } = await stream(["restore", folder]);
    isOver = true;
    await filling;
    expect([fault, audit]).toEqual([
      "stream restore: another command restores PENSTOCK_LIVE_0 now. Nothing was changed. Wait until it ends",
      [],
    ]);
    expect((await stream(["restore", folder])).fault).toBeUndefined();
    expect(await publish("shop")).toBe(2);
  });

  test("a backup reports success when every file and every folder that names it is on the disk", async () => {
    const { stream, publish } = await streamRig(server);
    await publish("shop");
    const parent = temporaryFolder();
    const handle = await open(parent);
    const handles = Object.getPrototypeOf(handle) as { sync: () => Promise<void> };
    await handle.close();
    const sync = handles.sync;
    const synced: string[] = [];
    handles.sync = async function (this: { fd: number }) {
      await sync.call(this);
      synced.push(readlinkSync(`/proc/self/fd/${this.fd}`));
    };
    onTestFinished(() => {
      handles.sync = sync;
    });
    const folder = path.join(parent, "new", "backup");
    expect((await stream(["backup", folder, "live"])).out).toContain("backup complete");
    const own = path.join(folder, "PENSTOCK_LIVE_0");
    expect(synced).toEqual([
      path.join(own, "stream.tar.s2"),
      path.join(own, "backup.json.new"),
      own,
      own,
      folder,
      path.join(parent, "new"),
      parent,
      path.join(folder, "streams.json.new"),
      folder,
    ]);
    const list = JSON.parse(readFileSync(path.join(folder, "streams.json"), "utf8"));
    expect(list).toEqual({
      server_version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      streams: [{ name: "PENSTOCK_LIVE_0", messages: 1 }],
    });
  });

  test("a backup that is stopped removes the incomplete copy of the stream, and reports it", async () => {
    const { stream, env, js } = await streamRig(server);
    for (let count = 0; count < 20; count++)
      await js.publish("penstock.live.0.shop", randomBytes(500_000));
    const folder = path.join(temporaryFolder(), "backup");
    const { context, stop } = commandWorld(env);
    const run = commandLine(context).parseAsync(["stream", "backup", folder, "live"], {
      from: "user",
    });
    const fault = run.then(
      () => undefined,
      (error: Error) => error.message,
    );
    const data = path.join(folder, "PENSTOCK_LIVE_0");
    while (!existsSync(data)) await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    expect(await fault).toBe(
      `stream backup: PENSTOCK_LIVE_0: stopped: the backup is incomplete. Remove ${folder}, or name another folder, and run the command again`,
    );
    expect(existsSync(data)).toBe(false);
    expect((await stream(["restore", folder])).fault).toContain(
      `${folder} has no streams.json, which a backup gets when it is complete.`,
    );
  });

  test("refuse another stream of the name, and an existing folder", async () => {
    const { stream, publish, messages, manager, ensure } = await streamRig(server);
    await publish("shop");
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    expect((await stream(["backup", folder, "live"])).fault).toContain("PENSTOCK_LIVE_0 exists");
    await manager.streams.delete("PENSTOCK_LIVE_0");
    await ensure();
    const differences = [
      "ends at 1, its backup ends at 2",
      "has other content than its backup (2 messages from 1, the last of ",
      "has other content than its backup (2 messages from 1, the last of ",
    ];
    for (const [index, difference] of differences.entries()) {
      await publish("shop");
      const { fault } = await stream(["restore", folder]);
      expect(fault).toContain(`the stream PENSTOCK_LIVE_0 exists and ${difference}`);
      expect(fault).toContain("Nothing was changed. Restore into an empty data folder");
      expect(fault).not.toContain("nats stream rm");
      expect(await messages()).toBe(index + 1);
    }
  });

  test("a restore states why it ended: a stop signal, or a server without room", async () => {
    const { stream, publish, env } = await streamRig(server);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    const { context, stop } = commandWorld(env);
    stop.abort();
    const stopped = commandLine(context).parseAsync(["stream", "restore", folder], {
      from: "user",
    });
    await expect(stopped).rejects.toThrow("stream restore: stopped. Nothing was changed");
    changeJson(path.join(folder, "PENSTOCK_LIVE_0", "backup.json"), ({ config }) => {
      config.max_bytes = 2 ** 60;
    });
    expect((await restored(await emptyServer(), folder)).fault).toMatch(
      /insufficient storage resources.* The server has no room for the stream, which reserves .*: free disk space\. .* PENSTOCK_STREAM_BYTES_MAX .* max_file_store/,
    );
  });

  test("a restore that an older nats-server rejects reports the version of the backup", async () => {
    const { stream, publish } = await streamRig(server);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    const manifest = path.join(folder, "PENSTOCK_LIVE_0", "backup.json");
    changeJson(manifest, ({ config }) => {
      config.retention = "a later policy";
    });
    const url = await emptyServer();
    expect((await restored(url, folder)).fault).not.toContain("The backup is of nats-server");
    changeJson(path.join(folder, "streams.json"), (list) => {
      list.server_version = "99.1.0";
    });
    expect((await restored(url, folder)).fault).toMatch(
      /JetStream rejected .* Not restored: PENSTOCK_LIVE_0\. The backup is of nats-server 99\.1\.0, and this server is \d+\.\d+\.\d+, which may reject it: use 99\.1\.0 or newer\. /,
    );
  });

  test.each([
    ["all messages", undefined, "0 messages from 4"],
    ["the oldest messages", { keep: 1 }, "1 message from 3, the last of TIME"],
    [
      "a message between others",
      { filter: "penstock.live.0.blog" },
      "2 messages from 1, the last of TIME",
    ],
  ])("a restore refuses a stream from which %s were purged", async (_, purged, content) => {
    const { stream, publish, manager } = await streamRig(server);
    for (const project of ["shop", "blog", "shop"]) await publish(project);
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    await manager.streams.purge("PENSTOCK_LIVE_0", purged);
    const { fault, out } = await stream(["restore", folder]);
    expect(fault?.replaceAll(/\d{4}-[^,;]+Z/g, "TIME")).toContain(
      `the stream PENSTOCK_LIVE_0 exists and has other content than its backup (${content}, the backup 3 messages from 1, the last of TIME; both end at 3): a restore never replaces messages. Nothing was changed. Restore into an empty data folder`,
    );
    expect(out).toBe("");
  });

  test("a repeated restore accepts a stream whose oldest messages have expired", async () => {
    const { stream, publish, manager, messages } = await streamRig(server);
    await publish("shop");
    await publish("shop");
    await delay(1_500);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    const age = { max_age: 1_400 * nanosPerMs, duplicate_window: 100 * nanosPerMs };
    await manager.streams.update("PENSTOCK_LIVE_0", age);
    for (const left of [1, 0]) {
      await vi.waitFor(async () => expect(await messages()).toBe(left), { timeout: 5_000 });
      const { fault, out } = await stream(["restore", folder]);
      expect([fault, out]).toEqual([
        undefined,
        "PENSTOCK_LIVE_0: unchanged: it already has the messages of the backup\n",
      ]);
    }
  });

  test("a restore replaces empty streams, which a gateway has created, only with --replace-empty", async () => {
    const { stream, publish, messages, ensure, manager } = await streamRig(server);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    await manager.streams.delete("PENSTOCK_LIVE_0");
    await untilStreamsGone(server, ["PENSTOCK_LIVE_0"]);
    await ensure();
    expect((await stream(["restore", folder])).fault).toContain(
      "these streams exist and are empty: PENSTOCK_LIVE_0. Nothing was changed.",
    );
    expect(await messages()).toBe(0);
    const replaced = await stream(["restore", folder, "--replace-empty"]);
    expect([replaced.fault, await messages()]).toEqual([undefined, 1]);
    expect(replaced.audit).toMatchObject([
      { change: "stream remove", stream: "PENSTOCK_LIVE_0" },
      { change: "stream restore", stream: "PENSTOCK_LIVE_0" },
    ]);
  });

  test("a restore keeps an event that a gateway stores while empty streams are replaced", async () => {
    const { stream, publish, ensure, manager, messages } = await streamRig(server);
    await publish("shop");
    const folder = path.join(temporaryFolder(), "backup");
    expect((await stream(["backup", folder, "live"])).fault).toBeUndefined();
    await manager.streams.delete("PENSTOCK_LIVE_0");
    await untilStreamsGone(server, ["PENSTOCK_LIVE_0"]);
    await ensure();
    // The event is stored after the command has read that the stream is empty.
    const request = NatsConnectionImpl.prototype.request;
    let isStored = false;
    const spy = vi.spyOn(NatsConnectionImpl.prototype, "request");
    onTestFinished(() => spy.mockRestore());
    spy.mockImplementation(async function (this: NatsConnectionImpl, subject, ...more) {
      if (!isStored && /STREAM\.(UPDATE|DELETE)\.PENSTOCK_LIVE_0$/.test(subject)) {
        isStored = true;
        await publish("shop");
      }
      return await request.call(this, subject, ...more);
    });
    const { fault, audit } = await stream(["restore", folder, "--replace-empty"]);
    expect(fault).toContain("the stream PENSTOCK_LIVE_0 is no longer empty: a gateway runs");
    expect(audit).toMatchObject([{ change: "stream remove", result: "failed" }]);
    expect([isStored, await messages()]).toEqual([true, 1]);
    await publish("shop");
    expect(await messages()).toBe(2);
  });

  test.each([
    [
      "a data file with another byte",
      (folder: string) => appendFileSync(path.join(folder, "stream.tar.s2"), "x"),
      "is damaged: its size or checksum differs",
    ],
    [
      "another format version",
      (folder: string) =>
        changeJson(path.join(folder, "backup.json"), ({ penstock }) => {
          penstock.version = 2;
        }),
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
    [
      "a data file that is a symbolic link",
      (folder: string) => {
        rmSync(path.join(folder, "stream.tar.s2"));
        symlinkSync("/dev/zero", path.join(folder, "stream.tar.s2"));
      },
      "stream.tar.s2 is not a regular file",
    ],
    [
      "a missing list of the streams, as of an interrupted backup",
      (folder: string) => rmSync(path.join(folder, "..", "streams.json")),
      "has no streams.json, which a backup gets when it is complete",
    ],
    [
      "a list without streams",
      (folder: string) => writeFileSync(path.join(folder, "..", "streams.json"), "null"),
      "streams.json is not a list of penstock stream backup",
    ],
    [
      "a missing stream",
      (folder: string) => rmSync(folder, { recursive: true }),
      "PENSTOCK_LIVE_0 is missing, or is not a folder, but streams.json lists it",
    ],
    [
      "a symbolic link to a stream",
      (folder: string) => {
        const moved = path.join(temporaryFolder(), "moved");
        cpSync(folder, moved, { recursive: true });
        rmSync(folder, { recursive: true });
        symlinkSync(moved, folder);
      },
      "PENSTOCK_LIVE_0 is missing, or is not a folder, but streams.json lists it",
    ],
    [
      "a stream of another backup",
      (folder: string) =>
        changeJson(path.join(folder, "backup.json"), ({ state }) => {
          state.messages = 7;
        }),
      "PENSTOCK_LIVE_0 has 7 messages, but streams.json lists 1: it is of another backup",
    ],
    [
      "a manifest that is null",
      (folder: string) => writeFileSync(path.join(folder, "backup.json"), "null"),
      "backup.json is not a manifest of penstock stream backup: a value is missing or null",
    ],
    ...["config", "state", "penstock"].map(
      (member) =>
        [
          `a manifest whose ${member} is null`,
          (folder: string) =>
            changeJson(path.join(folder, "backup.json"), (manifest) => {
              manifest[member] = null;
            }),
          "backup.json is not a manifest of penstock stream backup: a value is missing or null",
        ] as const,
    ),
    [
      "a manifest with a value that is null",
      (folder: string) =>
        changeJson(path.join(folder, "backup.json"), ({ config }) => {
          config.subjects = null;
        }),
      "backup.json is not a manifest of penstock stream backup: a value is missing or null",
    ],
  ] as const)("refuse %s before anything is restored", async (_, damage, said) => {
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

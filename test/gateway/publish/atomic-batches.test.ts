import { jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { describe, expect, test, vi } from "vitest";
import { filtered } from "../../kit/filtered-link.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  linesOf,
  liveStream,
  mebibyte,
  nextTurn,
  type Rig,
  type Settled,
  startRig,
  stored,
} from "../../kit/publisher-rig.ts";

const server = await natsServerForFile({ maxFileStore: 8_192 * mebibyte });
const projects = Array.from({ length: 40 }, (_, at) => `project-${at}`);
const allStored = projects.map(() => stored);

function sendEach(rig: Rig, ids = projects): Promise<Settled[]> {
  return Promise.all(ids.map((project) => rig.send("live", `line ${project}`, { project })));
}

const linesOfEach = projects.map((project) => `line ${project}`);

async function edit(rig: Rig, change: Partial<StreamConfig>): Promise<void> {
  await (await jetstreamManager(rig.link.connection)).streams.update(liveStream(rig), change);
}

async function expectStoredOnce(rig: Rig, lines: readonly string[] = linesOfEach): Promise<void> {
  expect(linesOf(await rig.stored("live")).sort()).toEqual([...lines].sort());
}

describe("frames that are ready together", () => {
  test("are stored as one batch", async () => {
    const rig = await startRig(server);
    expect(await sendEach(rig)).toEqual(allStored);
    expect(rig.heard.batches).toEqual([["stored", projects.length]]);
    const frames = await rig.stored("live");
    expect(linesOf(frames)).toEqual(linesOfEach);
    expect(frames.map(({ subject }) => subject)).toEqual(
      projects.map((project) => `${rig.settings.subjectPrefix}.live.0.${project}`),
    );
    expect(new Set(frames.map(({ messageId }) => messageId)).size).toBe(projects.length);
    expect(new Set(frames.map((frame) => frame.header("Nats-Batch-Id"))).size).toBe(1);
    expect(frames.map((frame) => frame.header("Penstock-Events"))).toEqual(projects.map(() => "1"));
    expect(rig.heard.framesAcked).toBe(projects.length);
    await rig.close();
  });

  test("are sent one by one if they are few", async () => {
    const rig = await startRig(server);
    expect(await sendEach(rig, projects.slice(0, 15))).toEqual(allStored.slice(0, 15));
    expect(rig.heard.batches).toEqual([]);
    expect((await rig.stored("live")).map((frame) => frame.header("Nats-Batch-Id"))).toEqual(
      projects.slice(0, 15).map(() => ""),
    );
    await rig.close();
  });

  test("wait while a batch is in flight", async () => {
    const rig = await startRig(server);
    server.freeze();
    const first = sendEach(rig);
    await nextTurn();
    const others = projects.map((project) => `other-${project}`);
    const second = sendEach(rig, others);
    await nextTurn();
    expect(rig.heard.framesSent).toBe(projects.length);
    server.thaw();
    expect(await first).toEqual(allStored);
    expect(await second).toEqual(allStored);
    expect(rig.heard.batches).toEqual([
      ["stored", projects.length],
      ["stored", projects.length],
    ]);
    await rig.close();
  });

  test("are sent after the outcome of the previous batch", async () => {
    const ids = new Set<string>();
    const rig = await startRig(server, {
      ackTimeoutMs: 1_000,
      through: (link) =>
        filtered(link, (message) => {
          const id = /Nats-Batch-Id: (\S+)/.exec(message.toString("latin1"))?.[1];
          if (id !== undefined) ids.add(id);
          return id === undefined || ids.size === 1;
        }),
    });
    server.freeze();
    const first = sendEach(rig);
    await nextTurn();
    const second = sendEach(
      rig,
      projects.map((project) => `other-${project}`),
    );
    await nextTurn();
    server.thaw();
    expect(await first).toEqual(allStored);
    expect(ids.size).toBe(2);
    const { streams } = await jetstreamManager(rig.link.connection);
    const { config } = await streams.info(liveStream(rig));
    await streams.delete(config.name);
    await streams.add(config);
    const unknown: Settled = { outcome: "unknown", code: "unavailable" };
    expect(await second).toEqual(projects.map(() => unknown));
    await rig.close();
  });

  test("are batched with at most one frame of each project", async () => {
    const rig = await startRig(server, { settings: { frameBytesMax: 1_024 } });
    const padding = "x".repeat(700);
    const sends = [0, 1, 2].flatMap((round) =>
      projects.map((project) => rig.send("live", `${round} ${padding}`, { project })),
    );
    expect(await Promise.all(sends)).toEqual([...allStored, ...allStored, ...allStored]);
    expect(rig.heard.batches).toEqual(projects.slice(0, 3).map(() => ["stored", projects.length]));
    const frames = await rig.stored("live");
    for (const project of projects) {
      const own = frames.filter(({ subject }) => subject.endsWith(`.${project}`));
      expect(linesOf(own).map((line) => line[0])).toEqual(["0", "1", "2"]);
    }
    await rig.close();
  });

  test("are sent one by one if they are large", async () => {
    const rig = await startRig(server);
    const large = rig.send("live", "l".repeat(100_000), { project: "large" });
    expect(await sendEach(rig)).toEqual(allStored);
    expect(await large).toEqual(stored);
    expect(rig.heard.batches).toEqual([["stored", projects.length]]);
    await rig.close();
  });

  test("are sent one by one if they belong to a large request", async () => {
    const rig = await startRig(server);
    const own = projects.map((project) =>
      rig.sendOwn("live", [`line ${project}`], { messageId: `own ${project}`, project }),
    );
    const old = projects.map((project) => rig.send("historical", `old ${project}`, { project }));
    expect(await Promise.all([...own, ...old])).toEqual([...allStored, ...allStored]);
    expect(rig.heard.batches).toEqual([]);
    await rig.close();
  });
});

describe("each frame of a batch that is not stored atomically", () => {
  test("is stored once if the stream no longer accepts batches", async () => {
    const rig = await startRig(server);
    await edit(rig, { allow_atomic: false });
    expect(await sendEach(rig)).toEqual(allStored);
    expect(rig.heard.batches).toEqual([["parted", projects.length]]);
    expect(rig.heard.failures).toEqual(["batch_refused"]);
    await expectStoredOnce(rig);
    // After the failed batch, frames are sent alone for a while.
    expect(await sendEach(rig)).toEqual(allStored);
    expect(await rig.streams.check()).toEqual([]);
    expect(rig.streams.states.of("live", 0).takesAtomicBatches).toBe(false);
    expect(rig.heard.batches).toHaveLength(1);
    await rig.close();
  });

  test("is stored once if one message of the batch is missing", async () => {
    let seen = 0;
    const rig = await startRig(server, {
      through: (link) =>
        filtered(link, (message) => !message.includes("Nats-Batch-Id") || ++seen !== 20),
    });
    expect(await sendEach(rig)).toEqual(allStored);
    expect(seen).toBe(projects.length);
    expect(rig.heard.batches).toEqual([["parted", projects.length]]);
    await expectStoredOnce(rig);
    await rig.close();
  });

  test("is stored once if the connection is lost in the middle of the batch", async () => {
    let seen = 0;
    const rig = await startRig(server, {
      through: (link) =>
        filtered(link, (message) => {
          if (message.includes("Nats-Batch-Id") && ++seen === 20)
            void link.connection.reconnect().catch(() => {});
          return true;
        }),
    });
    for (const { outcome } of await sendEach(rig)) expect(outcome).toMatch(/^(stored|duplicate)$/);
    await expectStoredOnce(rig);
    await rig.close();
  });

  test("is stored once if the commit is lost", async () => {
    const rig = await startRig(server, {
      ackTimeoutMs: 200,
      through: (link) => filtered(link, (message) => !message.includes("Nats-Batch-Commit")),
    });
    expect(await sendEach(rig)).toEqual(allStored);
    expect(rig.heard.batches).toEqual([["parted", projects.length]]);
    await expectStoredOnce(rig);
    await rig.close();
  });

  test("is acknowledged only if it is stored", async () => {
    const rig = await startRig(server, { settings: { streamBytesMax: 12_000 } });
    const padding = "x".repeat(500);
    const settled = await Promise.all(
      projects.map((project) => rig.send("live", `${project} ${padding}`, { project })),
    );
    expect(rig.heard.batches).toEqual([["parted", projects.length]]);
    const full: Settled = { outcome: "refused", code: "store_full" };
    for (const one of settled) expect([stored, full]).toContainEqual(one);
    const ids = projects.filter((_, at) => settled[at]!.outcome === "stored");
    expect(ids.length).toBeGreaterThan(3);
    expect(ids.length).toBeLessThan(projects.length);
    await expectStoredOnce(
      rig,
      ids.map((project) => `${project} ${padding}`),
    );
    await rig.close();
  });

  test("is stored once unless the stream rejects it as too large", async () => {
    const rig = await startRig(server);
    const sizes = projects.map((_, at) => (at === 7 ? 5_000 : 10));
    await edit(rig, { max_msg_size: 3_000 });
    const settled = await Promise.all(
      projects.map((project, at) => rig.send("live", "x".repeat(sizes[at]!), { project })),
    );
    const tooLarge: Settled = { outcome: "refused", code: "unavailable" };
    expect(settled).toEqual(projects.map((_, at) => (at === 7 ? tooLarge : stored)));
    await expectStoredOnce(
      rig,
      sizes.filter((size) => size === 10).map((size) => "x".repeat(size)),
    );
    await rig.close();
  });
});

describe("a batch whose acknowledgement is late", () => {
  test("is not stored twice if it was stored", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 200 });
    server.freeze();
    const sends = sendEach(rig);
    await vi.waitFor(() => expect(rig.heard.retries).toBeGreaterThanOrEqual(40), 5_000);
    server.thaw();
    for (const { outcome } of await sends) expect(outcome).toMatch(/^(stored|duplicate)$/);
    expect(rig.heard.batches).toEqual([["parted", projects.length]]);
    await expectStoredOnce(rig);
    await rig.close();
  });

  test("stores each frame once after the server was killed", async () => {
    const rig = await startRig(server);
    expect(await rig.send("live", "before")).toEqual(stored);
    server.freeze();
    const sends = sendEach(rig);
    await nextTurn();
    await server.kill();
    await vi.waitFor(() => expect(rig.link.connected).toBe(false), 5_000);
    await server.restart();
    for (const { outcome } of await sends) expect(outcome).toMatch(/^(stored|duplicate)$/);
    await expectStoredOnce(rig, ["before", ...linesOfEach]);
    await rig.close();
  });

  test("leaves its frames unknown after their deadline", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 60_000 });
    server.freeze();
    const sends = projects.map((project) =>
      rig.send("live", `line ${project}`, { project, withinMs: 150 }),
    );
    const unknown: Settled = { outcome: "unknown", code: "timeout" };
    expect(await Promise.all(sends)).toEqual(projects.map(() => unknown));
    server.thaw();
    await vi.waitFor(() => expect(rig.heard.batches).toHaveLength(1), 5_000);
    expect(await sendEach(rig, ["after"])).toEqual([stored]);
    await expectStoredOnce(rig, [...linesOfEach, "line after"]);
    await rig.close();
  });
});

describe("an existing stream", () => {
  test("accepts batches after the next start of the gateway", async () => {
    const old = await startRig(server, { settings: { atomicBatches: false } });
    expect(await sendEach(old)).toEqual(allStored);
    expect(old.heard.batches).toEqual([]);
    const rig = await startRig(server, { settings: { ...old.settings, atomicBatches: true } });
    expect(await sendEach(rig)).toEqual(allStored);
    expect(rig.heard.batches).toEqual([["stored", projects.length]]);
    expect(rig.log.join("\n")).toContain("stream now accepts atomic batches");
    await old.close();
    await rig.close();
  });

  test("is not used for batches if the settings forbid it", async () => {
    const first = await startRig(server);
    const rig = await startRig(server, { settings: { ...first.settings, atomicBatches: false } });
    expect(await sendEach(rig)).toEqual(allStored);
    expect(rig.heard.batches).toEqual([]);
    await first.close();
    await rig.close();
  });
});

test("frames that exceed the maximum of one batch are sent in several batches", async () => {
  const rig = await startRig(server, { settings: { streamBytesMax: 256 * mebibyte } });
  const ids = Array.from({ length: 2_500 }, (_, at) => `p-${at}`);
  expect(await sendEach(rig, ids)).toEqual(ids.map(() => stored));
  expect(rig.heard.batches).toEqual([
    ["stored", 1_000],
    ["stored", 1_000],
    ["stored", 500],
  ]);
  await expectStoredOnce(
    rig,
    ids.map((id) => `line ${id}`),
  );
  await rig.close();
});

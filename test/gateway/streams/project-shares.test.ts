import { DiscardPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { openUsageBucket, usageBucketName } from "../../../src/gateway/projects/usage/usage.ts";
import { StoredShares } from "../../../src/gateway/streams/project-shares.ts";
import { type FrameScope, manyProjects } from "../../../src/platform/nats/names.ts";
import { type StreamState, StreamStates } from "../../../src/platform/nats/readiness.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { mebibyte } from "../../kit/publisher-rig.ts";

const within = { timeout: 20_000, interval: 20 };
const streamBytes = 8 * mebibyte;
const messageBytes = mebibyte / 8;
let prefixes = 0;
let processes = 0;

const server = await natsServerForFile();
const connection = await connect({ servers: server.url });
const manager = await jetstreamManager(connection);

afterAll(() => connection.close());

interface Gateway {
  readonly shares: StoredShares;
  readonly state: StreamState;
  add(projectId: string, mebibytes?: number, subject?: string): Promise<void>;
  read(): Promise<void>;
  code(projectId: string): string | undefined;
}

interface Place {
  readonly subjectPrefix: string;
  readonly stream: string;
  gateway(options?: GatewayOptions): Promise<Gateway>;
  publish(subject: string, mebibytes: number): Promise<void>;
  purge(subject: string): Promise<void>;
}

interface GatewayOptions {
  readonly ownShares?: Record<string, number>;
  readonly projectShare?: number;
  readonly frameScope?: FrameScope;
  readonly failures?: number;
  readonly isStuck?: boolean;
}

async function startRig(): Promise<Place> {
  const subjectPrefix = `shares${prefixes++}`;
  const stream = `${subjectPrefix}_LIVE_0`.toUpperCase();
  const live = `${subjectPrefix}.live.0`;
  await manager.streams.add({
    name: stream,
    subjects: [`${live}.*`],
    discard: DiscardPolicy.New,
    max_bytes: streamBytes,
  });
  onTestFinished(async () => {
    await manager.streams.delete(stream);
    await manager.streams.delete(`KV_${usageBucketName(subjectPrefix)}`).catch(() => {});
  });
  const publish = async (subject: string, mebibytes: number): Promise<void> => {
    for (let bytes = 0; bytes < mebibytes * mebibyte; bytes += messageBytes)
      await jetstream(connection).publish(`${live}.${subject}`, new Uint8Array(messageBytes));
  };
  return {
    subjectPrefix,
    stream,
    publish,
    async purge(subject) {
      await manager.streams.purge(stream, { filter: `${live}.${subject}` });
    },
    async gateway({
      ownShares = {},
      projectShare = 75,
      frameScope = "project",
      failures = 0,
      isStuck = false,
    } = {}) {
      const streams = new StreamStates(subjectPrefix, 1);
      const state = streams.of("live", 0);
      const read = async (): Promise<void> => {
        const info = await manager.streams.info(stream);
        state.sequence = info.state.last_seq;
        state.reading = {
          created: String(info.created),
          firstSequence: info.state.first_seq,
          lastSequence: info.state.last_seq,
          deleted: info.state.num_deleted ?? 0,
          bytes: info.state.bytes,
          bytesMax: info.config.max_bytes,
        };
      };
      await read();
      const log = { warn: () => {}, info: () => {} };
      const shares = await StoredShares.open({
        link: { connection, connected: true },
        streams,
        log,
        config: { subjectPrefix, partitions: 1, projectShare, frameScope },
        streamShareOf: (projectId) => ownShares[projectId],
        projectsKnown: () => 3,
        processId: `process${processes++}`,
        openBucket: async () => {
          if (isStuck) await new Promise(() => {});
          if (failures-- > 0) throw new Error("no bucket yet");
          return await openUsageBucket(connection, { prefix: subjectPrefix, replicas: 1, log });
        },
        monotonicMs: () => performance.now(),
      });
      onTestFinished(() => shares.close());
      return {
        shares,
        state,
        read,
        async add(projectId, mebibytes = 1, subject = projectId) {
          for (let bytes = 0; bytes < mebibytes * mebibyte; bytes += messageBytes) {
            await publish(subject, messageBytes / mebibyte);
            state.sequence = (await manager.streams.info(stream)).state.last_seq;
            shares.stored("live", projectId, messageBytes);
          }
        },
        code: (projectId) => shares.refusalOf("live", projectId)?.code,
      };
    },
  };
}

describe("gateways that share a stream", () => {
  test("enforce one share for a project that uses both gateways", async () => {
    const { gateway } = await startRig();
    const [one, other] = [await gateway(), await gateway()];
    await one.add("flood", 3);
    await other.add("flood", 3);
    await expect.poll(() => one.code("flood"), within).toBe("project_full");
    await expect.poll(() => other.code("flood"), within).toBe("project_full");
    for (const { shares, code } of [one, other]) {
      expect(code("quiet")).toBe(undefined);
      expect(shares.projectsOver).toBe(1);
    }
  });

  test("read at the start how much each project has stored", async () => {
    const { gateway } = await startRig();
    const first = await gateway();
    await first.add("flood", 6);
    await first.add("quiet", 0.125);
    await first.shares.close();
    const second = await gateway();
    expect(second.code("flood")).toBe("project_full");
    expect(second.code("quiet")).toBe(undefined);
  });

  test("count the bytes that a killed gateway had stored", async () => {
    const { gateway, stream, subjectPrefix } = await startRig();
    const killed = await gateway();
    await killed.add("flood", 6);
    const bucket = await new Kvm(connection).open(usageBucketName(subjectPrefix));
    const written = async () =>
      (await bucket.get(`streams.shares.${stream}`))?.json<{ projects: unknown[] }>().projects
        .length;
    await expect.poll(written, within).toBe(1);
    const next = await gateway();
    await expect.poll(() => next.code("flood"), within).toBe("project_full");
  });

  test("do not wait for a usage bucket that does not answer", async () => {
    const { gateway } = await startRig();
    const beginMs = performance.now();
    const one = await gateway({ isStuck: true });
    await one.add("flood", 6);
    expect(one.code("flood")).toBe("project_full");
    await one.shares.close();
    expect(performance.now() - beginMs).toBeLessThan(5_000);
  });

  test("recreate the usage record after its bucket was deleted", async () => {
    const { gateway, subjectPrefix } = await startRig();
    const one = await gateway();
    await one.add("flood", 3);
    const other = await gateway();
    await manager.streams.delete(`KV_${usageBucketName(subjectPrefix)}`);
    await one.add("flood", 3);
    await expect.poll(() => other.code("flood"), within).toBe("project_full");
  });

  const records: [string, string | object][] = [
    ["text", "no JSON"],
    ["nothing", "null"],
    ["no list", { projects: {} }],
    ["a project without slices", { projects: [["quiet"]] }],
    ["an odd slice", { projects: [["quiet", [1]]] }],
    ["a slice below 0", { projects: [["quiet", [1, -mebibyte]]] }],
    ["text for numbers", { projects: [["quiet", ["1", "8000000"]]] }],
    ["a number past all numbers", '{"created":"CREATED","projects":[["quiet",[1,1e999]]]}'],
    ["too many slices", { projects: [["quiet", Array(20_000).fill(9)]] }],
    ["an invalid id", { projects: [["a b", [1, mebibyte]]] }],
    ["another stream of the name", { created: "2020", projects: [["quiet", [9, 8 * mebibyte]]] }],
  ];

  // The cases run concurrently, because each waits for rounds of one second.
  test("replace a damaged usage record", async () => {
    await Promise.all(records.map(([what, record]) => expectReplaced(what, record)));
  });

  async function expectReplaced(what: string, record: string | object): Promise<void> {
    const { gateway, subjectPrefix, stream } = await startRig();
    const log = { warn: () => {} };
    const bucket = await openUsageBucket(connection, { prefix: subjectPrefix, replicas: 1, log });
    const created = String((await manager.streams.info(stream)).created);
    const value =
      typeof record === "string"
        ? record.replace("CREATED", created)
        : JSON.stringify({ created, ...record });
    await bucket.put(`streams.shares.${stream}`, value);
    const one = await gateway({ projectShare: 1 });
    await one.add("filler", 1);
    await one.read();
    expect(one.code("quiet"), what).toBe(undefined);
    const other = await gateway({ projectShare: 1 });
    await expect
      .poll(() => other.code("filler"), { ...within, message: what })
      .toBe("project_full");
    expect(other.code("quiet"), what).toBe(undefined);
  }

  test("leave one usage record when they start and stop", async () => {
    const { gateway, subjectPrefix, stream } = await startRig();
    for (let life = 0; life < 12; life++) {
      const one = await gateway();
      await one.add("flood", 0.5);
      await one.add(`p${life}`, 0.125);
      await one.shares.close();
    }
    const bucket = await new Kvm(connection).open(usageBucketName(subjectPrefix));
    const keys: string[] = [];
    for await (const key of await bucket.keys(">")) keys.push(key);
    expect(keys).toEqual([`streams.shares.${stream}`]);
    const last = await gateway({ projectShare: 70 });
    expect(last.code("flood")).toBe("project_full");
    expect(last.code("p3")).toBe(undefined);
  });

  test("count everything once when they write at the same time", async () => {
    const { gateway } = await startRig();
    const all = await Promise.all(Array.from({ length: 6 }, () => gateway({ projectShare: 50 })));
    for (const one of all) await one.add("flood", 0.625);
    const fresh = () => gateway({ projectShare: 46 });
    await expect.poll(async () => (await fresh()).code("flood"), within).toBe("project_full");
    for (const one of all) expect(one.code("flood")).toBe(undefined);
    await all[0]!.add("flood", 0.25);
    for (const one of all) await expect.poll(() => one.code("flood"), within).toBe("project_full");
  });
});

describe("messages that are removed from a stream", () => {
  test("let their project store again after a purge of its subject", async () => {
    const { gateway, purge, stream, subjectPrefix } = await startRig();
    const one = await gateway();
    await one.add("quiet", 0.5);
    await one.add("flood", 6);
    await one.add("quiet", 0.5);
    await expect.poll(() => one.code("flood"), within).toBe("project_full");
    await manager.streams.purge(stream, { filter: `${subjectPrefix}.live.0.flood`, keep: 8 });
    await one.read();
    await expect.poll(() => one.code("flood"), within).toBe(undefined);
    await one.add("flood", 5.5);
    await one.read();
    await expect.poll(() => one.code("flood"), within).toBe("project_full");
    await purge("flood");
    await one.read();
    await expect.poll(() => one.code("flood"), within).toBe(undefined);
    expect(one.shares.projectsOver).toBe(0);
  });

  test("do not count after a restart if another program purged them", async () => {
    const { gateway, purge } = await startRig();
    const one = await gateway();
    await one.add("quiet", 0.5);
    await one.add("flood", 6);
    await one.add("quiet", 0.5);
    await one.shares.close();
    await purge("flood");
    const next = await gateway();
    await expect.poll(() => next.code("flood"), within).toBe(undefined);
  });

  test("do not count after a purge if they held events of several projects", async () => {
    const { gateway, purge } = await startRig();
    const one = await gateway({ frameScope: "partition" });
    await one.add("quiet", 0.5);
    await one.add("flood", 6, manyProjects);
    await one.add("quiet", 0.5);
    await expect.poll(() => one.code("flood"), within).toBe("project_full");
    await purge(manyProjects);
    await one.read();
    await expect.poll(() => one.code("flood"), within).toBe(undefined);
    expect(one.code("quiet")).toBe(undefined);
  });
});

test("a purge does not lower the count of another project", async () => {
  const scopes = ["project", "partition"] as const;
  await Promise.all(scopes.map(expectOthersNotLowered));

  async function expectOthersNotLowered(frameScope: FrameScope): Promise<void> {
    const { gateway, purge } = await startRig();
    const one = await gateway({ frameScope });
    await one.add("a", 0.125, manyProjects);
    await one.add("a", 1.25);
    await one.add("b", 6.5);
    await one.read();
    await expect.poll(() => one.code("b"), within).toBe("project_full");
    await purge("a");
    await one.read();
    const next = await gateway({ frameScope });
    const end = performance.now() + 3_500;
    await expect
      .poll(() => {
        expect(one.code("b")).toBe("project_full");
        expect(next.code("b")).toBe("project_full");
        expect(one.code("a")).not.toBe("project_full");
        return performance.now() > end;
      }, within)
      .toBe(true);
  }
});

test("a project is admitted again after a purge of its own messages", async () => {
  const { gateway, purge } = await startRig();
  const one = await gateway();
  await one.add("flood", 0.125, manyProjects);
  await one.add("flood", 6);
  await one.add("quiet", 0.5);
  await expect.poll(() => one.code("flood"), within).toBe("project_full");
  await purge("flood");
  await one.read();
  await expect.poll(() => one.code("flood"), within).toBe(undefined);
});

test("a project's own share replaces the general share", async () => {
  const { gateway } = await startRig();
  const one = await gateway({ ownShares: { main: 90, tiny: 5 }, projectShare: 50 });
  await one.add("tiny", 0.5);
  await one.add("main", 5);
  await one.read();
  expect(one.code("main")).toBe(undefined);
  expect(one.code("tiny")).toBe("project_full");
});

test("uncounted messages do not use up a project's share", async () => {
  const { gateway, publish } = await startRig();
  await publish("main", 7.25);
  const one = await gateway();
  expect(one.code("main")).toBe(undefined);
  await one.add("main", 0.25);
  await expect.poll(() => one.code("main"), within).toBe("store_full");
  expect(one.code("quiet")).toBe(undefined);
});

test("a missing or unusable stream is not reported as full", async () => {
  const { gateway } = await startRig();
  const one = await gateway();
  await one.add("main", 6.25);
  await one.add("other", 1.25);
  await one.read();
  const codes = () => [one.code("main"), one.code("other")];
  expect(codes()).toEqual(["project_full", "store_full"]);
  const { reading } = one.state;
  one.state.reading = undefined;
  expect(codes()).toEqual([undefined, undefined]);
  one.state.reading = reading;
  one.state.refusal = { code: "unavailable", detail: "It is missing" };
  expect(codes()).toEqual([undefined, undefined]);
});

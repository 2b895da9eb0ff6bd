// Several gateways count one project together, through records in the usage bucket of a real
// nats-server: what one stores, another knows; a restart goes on with what is there; purges,
// records of no use and an upgrade are met.

import { DiscardPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { manyProjects } from "../../src/nats/names.ts";
import { StreamStates } from "../../src/nats/readiness.ts";
import { openUsageBucket, usageBucketName } from "../../src/projects/usage/usage.ts";
import { StoredShares } from "../../src/streams/project-shares.ts";
import { natsServerForFile } from "../../testkit/for-file.ts";
import { mebibyte } from "../../testkit/publisher-rig.ts";

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
  /** Stores mebibytes of the project, under its own subject unless another is named. */
  add(projectId: string, mebibytes?: number, subject?: string): Promise<void>;
  /** Reads what the stream holds now, as the watch of the streams does. */
  read(): Promise<void>;
  code(projectId: string): string | undefined;
}

interface Place {
  readonly subjectPrefix: string;
  readonly stream: string;
  gateway(options?: GatewayOptions): Promise<Gateway>;
  /** Messages that no gateway counts. */
  publish(subject: string, mebibytes: number): Promise<void>;
  purge(subject: string): Promise<void>;
}

interface GatewayOptions {
  readonly ownShares?: Record<string, number>;
  readonly storedBytes?: Record<string, number>;
  readonly projectShare?: number;
}

async function placeOf(): Promise<Place> {
  const subjectPrefix = `shares${prefixes++}`;
  const stream = `${subjectPrefix}_LIVE_0`.toUpperCase();
  const live = `${subjectPrefix}.live.0`;
  await manager.streams.add({
    name: stream,
    subjects: [`${live}.*`],
    discard: DiscardPolicy.New,
    max_bytes: streamBytes,
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
    async gateway({ ownShares = {}, storedBytes = {}, projectShare = 75 } = {}) {
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
          ageMaxMs: 3_600_000,
        };
      };
      await read();
      const log = { warn: () => {}, info: () => {} };
      const shares = await StoredShares.open({
        ...{ link: { connection, connected: true }, streams, log },
        config: { subjectPrefix, partitions: 1, projectShare },
        streamShareOf: (projectId) => ownShares[projectId],
        projectsKnown: () => 3,
        processId: `process${processes++}`,
        bucketName: usageBucketName(subjectPrefix),
        openBucket: () => openUsageBucket(connection, { prefix: subjectPrefix, replicas: 1, log }),
        storedBytes: async () => new Map(Object.entries(storedBytes)),
        monotonicMs: () => performance.now(),
      });
      onTestFinished(() => shares.close());
      return {
        shares,
        read,
        async add(projectId, mebibytes = 1, subject = projectId) {
          await publish(subject, mebibytes);
          state.sequence = (await manager.streams.info(stream)).state.last_seq;
          for (let bytes = 0; bytes < mebibytes * mebibyte; bytes += messageBytes)
            shares.stored("live", projectId, messageBytes);
        },
        code: (projectId) => shares.refusalOf("live", projectId)?.code,
      };
    },
  };
}

describe("gateways that share a stream", () => {
  test("a project that stores through both has one share", async () => {
    const { gateway } = await placeOf();
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

  test("a gateway that starts, or starts again, knows what was stored before", async () => {
    const { gateway } = await placeOf();
    const first = await gateway();
    await first.add("flood", 6);
    await first.add("quiet", 0.125);
    await first.shares.close();
    const second = await gateway();
    expect(second.code("flood")).toBe("project_full");
    expect(second.code("quiet")).toBe(undefined);
  });

  test("what a killed gateway had stored counts but for the last of it", async () => {
    const { gateway, subjectPrefix } = await placeOf();
    const killed = await gateway();
    await killed.add("flood", 6);
    const bucket = await new Kvm(connection).open(usageBucketName(subjectPrefix));
    const written = async () => {
      const keys: string[] = [];
      for await (const key of await bucket.keys("flood.*.*")) keys.push(key);
      return keys.length;
    };
    await expect.poll(written, within).toBe(1);
    const next = await gateway();
    await expect.poll(() => next.code("flood"), within).toBe("project_full");
  });

  test("a bucket that was deleted is written again", async () => {
    const { gateway, subjectPrefix } = await placeOf();
    const one = await gateway();
    await one.add("flood", 3);
    const other = await gateway();
    await manager.streams.delete(`KV_${usageBucketName(subjectPrefix)}`);
    await one.add("flood", 3);
    await expect.poll(() => other.code("flood"), within).toBe("project_full");
  });

  test("values that are no records, or of another stream of the name, do not count", async () => {
    const { gateway, subjectPrefix, stream } = await placeOf();
    const log = { warn: () => {} };
    const bucket = await openUsageBucket(connection, { prefix: subjectPrefix, replicas: 1, log });
    const { created } = await manager.streams.info(stream);
    const huge = [1, 8 * mebibyte];
    for (const [from, value] of Object.entries({
      text: "no JSON",
      nothing: "null",
      odd: JSON.stringify({ created, slices: [1] }),
      negative: JSON.stringify({ created, slices: [1, -mebibyte] }),
      texts: JSON.stringify({ created, slices: ["1", "8000000"] }),
      infinite: `{"created":"${String(created)}","slices":[1,1e999]}`,
      long: JSON.stringify({ created, slices: Array(10_000).fill(9) }),
      older: JSON.stringify({ created: "2020-01-01T00:00:00Z", slices: huge }),
    }))
      await bucket.put(`quiet.${from}.${stream}`, value);
    await bucket.put("quiet.other.NO_STREAM", JSON.stringify({ created, slices: huge }));
    const one = await gateway({ projectShare: 1 });
    await one.add("filler", 1);
    await one.read();
    await expect.poll(() => one.code("filler"), within).toBe("project_full");
    expect(one.code("quiet")).toBe(undefined);
  });
});

describe("what leaves a stream", () => {
  test("a purge of the project's subject lets it in again, also one that leaves some", async () => {
    const { gateway, purge, stream, subjectPrefix } = await placeOf();
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

  test("what others have purged does not count after a restart", async () => {
    const { gateway, purge } = await placeOf();
    const one = await gateway();
    await one.add("quiet", 0.5);
    await one.add("flood", 6);
    await one.add("quiet", 0.5);
    await one.shares.close();
    await purge("flood");
    const next = await gateway();
    await expect.poll(() => next.code("flood"), within).toBe(undefined);
  });

  test("in messages of several projects a purge counts too", async () => {
    const { gateway, purge } = await placeOf();
    const one = await gateway();
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

test("a project's own share counts in place of the general one", async () => {
  const { gateway } = await placeOf();
  const one = await gateway({ ownShares: { main: 90, tiny: 5 }, projectShare: 50 });
  await one.add("tiny", 0.5);
  await one.add("main", 5);
  await one.read();
  expect(one.code("main")).toBe(undefined);
  expect(one.code("tiny")).toBe("project_full");
});

describe("a stream that was filled before gateways counted", () => {
  test("is taken to be of those that the usage records name, if they have messages in it", async () => {
    const { gateway, publish } = await placeOf();
    await publish("main", 6.5);
    await publish("web", 0.125);
    const stored = { main: 9e9, web: 1e8, elsewhere: 1e12 };
    const one = await gateway({ storedBytes: stored });
    expect(one.code("main")).toBe("project_full");
    expect(one.code("web")).toBe(undefined);
    expect(one.code("elsewhere")).toBe(undefined);
    expect(one.shares.projectsOver).toBe(1);
  });

  test("is nobody's where no usage is known, and the reserve keeps room", async () => {
    const { gateway, publish } = await placeOf();
    await publish("main", 7.25);
    const one = await gateway();
    expect(one.code("main")).toBe(undefined);
    await one.add("main", 0.25);
    await expect.poll(() => one.code("main"), within).toBe("store_full");
    expect(one.code("quiet")).toBe(undefined);
  });
});

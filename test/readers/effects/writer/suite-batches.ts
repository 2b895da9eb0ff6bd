import { jetstreamManager } from "@nats-io/jetstream";
import { expect, onTestFinished, test } from "vitest";
import { appliedOf, rebuild } from "../../../../src/readers/effects/writer/rebuild.ts";
import { verify } from "../../../../src/readers/effects/writer/verify.ts";
import { storedStream } from "../../../../src/readers/stream/stored-stream.ts";
import { apart, dumpOf, untilApplied } from "../../../kit/effects-dumps.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { makeStreams, storeFrames, type TestFrame, uuidOf } from "../../../kit/stored-events.ts";
import { commitOf } from "../store/row-kit.ts";
import { deleteStreams, type WriterRig } from "./writer-kit.ts";

export function batchTests(rig: WriterRig): void {
  const { connection, nats, testWithSqlite } = rig;

  test("applies and commits stored events", async () => {
    const store = await rig.openStore();
    const writer = rig.startWriter({ store });
    const event = { uuid: "00000000-0000-4000-8000-000000000001", distinctId: "anna" };
    const events = [{ ...event, receivedAtMs: 1_800_000_000_000, set: { plan: "pro" } }];
    const frame = { lane: "live", projectId: "shop", messageId: "one", events } as const;
    const [sequence] = await storeFrames(connection, [frame]);
    await writer.positionsReached(new Map([["PENSTOCK_LIVE_0", sequence!]]));
    const person = await store.reader.personByDistinctId("shop", "anna");
    expect(person).toMatchObject({ mainDistinctId: "anna", propertiesJson: '{"plan":"pro"}' });
    expect(writer.counts).toMatchObject({ events: 1, frames: 1, duplicates: 0, rejected: 0 });
  });

  testWithSqlite(
    "pauses after a batch if its rate is limited, and ends immediately during the pause",
    async () => {
      const [slowStore, freeStore] = [await rig.openStore(), await rig.openStore()];
      const slow = rig.startWriter({ store: slowStore, eventsPerSecondMax: 0.001 });
      const free = rig.startWriter({ store: freeStore });
      const frame = (nth: number) => ({
        ...({ lane: "live", projectId: "shop", messageId: `paced-${nth}` } as const),
        events: [
          {
            uuid: `00000000-0000-4000-8000-00000000000${nth}`,
            distinctId: `paced-${nth}`,
            receivedAtMs: 1_800_000_000_000,
          },
        ],
      });
      const [first] = await storeFrames(connection, [frame(1)]);
      await slow.positionsReached(new Map([["PENSTOCK_LIVE_0", first!]]));
      const [second] = await storeFrames(connection, [frame(2)]);
      await free.positionsReached(new Map([["PENSTOCK_LIVE_0", second!]]));
      expect(slow.counts).toMatchObject({ events: 1 });
      await slow.close();
      expect(slow.counts).toMatchObject({ events: 1 });
    },
  );

  testWithSqlite("logs a spike when the spike is committed", async () => {
    const store = await rig.openStore();
    const said: { message: string; isThere: boolean }[] = [];
    let isThere = false;
    const commit = store.commit.bind(store);
    store.commit = async (changes) => {
      await commit(changes);
      isThere = changes.spikes.length > 0;
    };
    const info = (_: object, message: string): void => void said.push({ message, isThere });
    const writer = rig.startWriter({ store, log: { info, warn: () => {}, error: () => {} } });
    const frames = [...Array(8).keys(), 600].map((nth) => ({
      ...({ lane: "live", projectId: "shop", messageId: `hot-${nth}` } as const),
      events: Array.from({ length: nth === 600 ? 1 : 1_000 }, (_, n) => ({
        uuid: uuidOf(nth * 1_000 + n),
        distinctId: "hot",
        receivedAtMs: 1_500_000_000_000 + nth * 2_000,
      })),
    }));
    const sequences = await storeFrames(connection, frames);
    await writer.positionsReached(new Map([["PENSTOCK_LIVE_0", sequences.at(-1)!]]));
    await expect.poll(() => said).toContainEqual({ message: "spike began", isThere: true });
  });

  testWithSqlite(
    "writes all events that arrive during a commit with one further commit",
    async () => {
      const store = await rig.openStore();
      const commit = store.commit.bind(store);
      const begun = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      let commits = 0;
      store.commit = async (changes) => {
        commits++;
        begun.resolve();
        await released.promise;
        await commit(changes);
      };
      const writer = rig.startWriter({ store });
      await begun.promise;
      const frames = randomFrames(numbersFrom(5), { count: 20 });
      for (const frame of frames) await storeFrames(connection, [frame]);
      await expect.poll(() => writer.counts.frames).toBe(20);
      released.resolve();
      await untilApplied(store.reader, connection);
      expect(commits).toBe(2);
    },
  );

  testWithSqlite(
    "reports the age of the oldest of thousands of unapplied messages as the lag",
    async () => {
      const store = await rig.openStore();
      const commit = store.commit.bind(store);
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let commits = 0;
      store.commit = async (changes) => {
        const { sequence } = changes.positions.find((one) => one.stream === "PENSTOCK_LIVE_0")!;
        if (sequence > 0) await (commits++ === 0 ? first : second).promise;
        await commit(changes);
      };
      const writer = rig.startWriter({ store, batchEventsMax: 1 });
      onTestFinished(() => {
        first.resolve();
        second.resolve();
      });
      const frames = Array.from({ length: 3_000 }, (_, nth) => setFrame({ nth }, ["anna"], nth));
      await storeFrames(connection, frames);
      const nowMs = Date.now() + 60_000;
      const live = () => {
        const { streams } = writer.status(nowMs);
        return streams.find((one) => one.stream === "PENSTOCK_LIVE_0")!;
      };
      await expect.poll(() => live().lastSequence).toBe(3_000);
      const stream = storedStream(await jetstreamManager(connection), "PENSTOCK_LIVE_0");
      const secondsSince = async (sequence: number) =>
        (nowMs - (await stream.message(sequence))!.storedAtMs) / 1_000;
      expect(live()).toMatchObject({ sequence: 0, lagSeconds: await secondsSince(1) });
      first.resolve();
      await expect.poll(() => live().sequence).toBeGreaterThan(0);
      const { sequence, lagSeconds } = live();
      expect(lagSeconds).toBe(await secondsSince(sequence + 1));
      expect(sequence).toBeLessThan(10);
      expect(lagSeconds).toBeGreaterThan(await secondsSince(1_000));
    },
  );

  testWithSqlite(
    "delays the next commit until a caller waits for it or the writer ends",
    async () => {
      const store = await rig.openStore();
      const writer = rig.startWriter({ store, commitEveryMs: 3_600_000 });
      await expect.poll(() => writer.commits).toBeGreaterThan(0);
      const frames = Array.from({ length: 9 }, (_, nth) => setFrame({ nth }, ["anna"], nth));
      await storeFrames(connection, frames.slice(0, 6));
      await expect.poll(() => writer.counts.frames).toBe(6);
      const applied = async () => (await store.positions()).at(-1)?.sequence;
      const before = await applied();
      expect(before).toBeLessThan(6);
      await writer.positionsReached(new Map([["PENSTOCK_LIVE_0", 6]]));
      await storeFrames(connection, frames.slice(6, 7));
      await expect.poll(() => writer.counts.frames).toBe(7);
      const waiting = writer.positionsReached(new Map([["PENSTOCK_LIVE_0", 8]]));
      await storeFrames(connection, frames.slice(7, 8));
      await waiting;
      await storeFrames(connection, frames.slice(8));
      await expect.poll(() => writer.counts.frames).toBe(9);
      await writer.close();
      const live = (await store.positions()).find((one) => one.stream === "PENSTOCK_LIVE_0");
      expect(live?.sequence).toBe(9);
    },
  );

  test("gives the same result for any batch size and order of lanes", async () => {
    await storeFrames(connection, randomFrames(numbersFrom(7), { count: 60 }));
    const whole = await rig.undisturbed();
    expect(whole.length).toBeGreaterThan(60);
    for (const settings of [{ batchEventsMax: 1 }, { batchEventsMax: 17, bytesMax: 20_000 }])
      expect(apart(whole, await rig.undisturbed(settings))).toEqual([]);
  });

  test("applies later events on top of a commit in parts", async () => {
    const fat = Array.from({ length: 20 }, (_, nth) => `fat-${nth}`);
    const small = Array.from({ length: 2_500 }, (_, nth) => `small-${nth}`);
    const blob = "x".repeat(100_000);
    await storeFrames(connection, [
      ...fat.map((id, nth) => setFrame({ blob }, [id], nth)),
      ...[20, 21, 22, 23, 24, 25].map((nth) => setFrame({ [nth]: 1 }, [...small, ...fat], nth)),
    ]);
    const store = await rig.openStore();
    const commit = store.commit.bind(store);
    const inParts = new Set<number>();
    store.commit = async (changes) => {
      if (changes.isPart === true) inParts.add(changes.number);
      await commit(changes);
    };
    const people = { cacheBytesMax: 0 };
    const writer = rig.startWriter({ store, changedBytesMax: 100_000, people });
    await untilApplied(store.reader, connection);
    await writer.close();
    expect(inParts.size).toBeGreaterThan(3);
    expect(apart(await rig.undisturbed(), await dumpOf(store.reader))).toEqual([]);
  });

  testWithSqlite(
    "gives the same result for frames in a different order, and for the lanes one after the other",
    async () => {
      const lanes = ["live", "historical"] as const;
      const frames = randomFrames(numbersFrom(4), {
        count: 80,
        linkedLanes: lanes,
        mayRefuse: false,
      });
      const of = (lane: TestFrame["lane"]) => frames.filter((frame) => frame.lane === lane);
      const dumps: string[][] = [];
      for (const parts of [
        [frames],
        [frames.toReversed()],
        [of("historical"), of("live").toReversed()],
      ]) {
        await deleteStreams(connection, nats);
        await makeStreams(connection);
        const store = await rig.openStore();
        const writer = rig.startWriter({ store, batchEventsMax: 25 });
        for (const part of parts) {
          await storeFrames(connection, part);
          await untilApplied(store.reader, connection);
        }
        await writer.close();
        dumps.push((await dumpOf(store.reader)).map(withoutOrderOfLinks));
      }
      expect(dumps[0]!.length).toBeGreaterThan(80);
      for (const dump of dumps.slice(1)) expect(apart(dumps[0]!, dump)).toEqual([]);
    },
  );

  test("continues at its position after a restart", async () => {
    const random = numbersFrom(3);
    const store = await rig.openStore();
    for (const partitions of [1, 4, 4]) {
      await makeStreams(connection, partitions);
      const writer = rig.startWriter({ store });
      await storeFrames(connection, randomFrames(random, { count: 20, partitions }));
      await untilApplied(store.reader, connection);
      await writer.close();
    }
    expect(await store.reader.incidents(10)).toEqual([]);
    const into = await rig.openStore();
    const verified = await verify({ connection, prefix: "penstock", reader: store.reader, into });
    expect(verified).toMatchObject({ messages: 60, missing: 0, differences: [] });
  });

  testWithSqlite(
    "finds the same duplicates in a rebuild, even if the memory of duplicates was full",
    async () => {
      const partitions = 2;
      await makeStreams(connection, partitions);
      const store = await rig.openStore();
      const full = { duplicatesBytesMax: 32_768 };
      const writer = rig.startWriter({ store, ...full });
      const frames = Array.from({ length: 80 }, (_, nth): TestFrame => {
        const partition = nth % partitions;
        const events = Array.from({ length: 100 }, (_, at) => {
          const uuid = uuidOf(1e9 + ((50 * (nth - partition) + at) % 2_000));
          const base = { uuid, distinctId: "anna" };
          return { ...base, receivedAtMs: 1_800_000_000_000 + nth };
        });
        const messageId = `full-${nth}`;
        return { lane: "live", partition, projectId: `p${partition}`, messageId, events };
      });
      await storeFrames(connection, frames);
      await untilApplied(store.reader, connection);
      await writer.close();
      const { duplicates } = writer.counts;
      expect(duplicates).toBeLessThan(4_000);
      const applied = await appliedOf(store.reader);
      const into = await rig.openStore();
      await rebuild({ connection, prefix: "penstock", applied, into, ...full });
      expect(apart(await dumpOf(store.reader), await dumpOf(into.reader))).toEqual([]);
    },
  );

  testWithSqlite(
    "differs from a rebuild that reads the lanes in a different order only in links that exclude each other",
    async () => {
      const store = await rig.openStore();
      const writer = rig.startWriter({ store, batchEventsMax: 15 });
      const lanes = ["live", "historical"] as const;
      const frames = randomFrames(numbersFrom(11), { count: 90, linkedLanes: lanes });
      for (let at = 0; at < frames.length; at += 30) {
        await storeFrames(connection, frames.slice(at, at + 30));
        await untilApplied(store.reader, connection);
      }
      await writer.close();
      const dump = await dumpOf(store.reader);
      expect(dump.some((line) => line.includes("refused_both_known"))).toBe(true);
      const into = await rig.openStore();
      const verified = await verify({ connection, prefix: "penstock", reader: store.reader, into });
      expect(verified).toMatchObject({ messages: 90, missing: 0, differences: [] });
      expect(verified.explained.join()).toMatch(/^\d+ lines differ because of conflicting links/);
    },
  );

  testWithSqlite(
    "may differ from a rebuild in which of two mutually exclusive links is rejected",
    async () => {
      await makeStreams(connection, 2);
      const store = await rig.openStore();
      const writer = rig.startWriter({ store });
      let nth = 0;
      const step = async (partition: number, fields: object) => {
        const uuid = uuidOf(++nth);
        const event = { uuid, receivedAtMs: 1_800_000_000_000 + nth, ...fields };
        const frame = { lane: "live", partition, projectId: "shop", messageId: `${nth}` } as const;
        await storeFrames(connection, [{ ...frame, events: [event as never] }]);
        await untilApplied(store.reader, connection);
      };
      const link = { event: "$identify", kind: "identify" };
      const identify = (distinctId: string, anonymous: string) => ({
        ...link,
        distinctId,
        properties: { $anon_distinct_id: anonymous },
      });
      // The project has events in both partitions, as if two gateways had different settings.
      for (let at = 0; at < 8; at++) {
        await step(at % 2, identify(`first-${at}`, `anonymous-${at}`));
        await step(1 - (at % 2), identify(`second-${at}`, `anonymous-${at}`));
      }
      await step(0, { distinctId: "zoe", set: { plan: "pro" } });
      await writer.close();
      const comparing = { connection, prefix: "penstock", reader: store.reader };
      const same = await verify({ ...comparing, into: await rig.openStore() });
      expect(same).toMatchObject({ messages: 17, missing: 0, differences: [] });
      const [row] = await store.members("shop", ["zoe"]);
      const members = [{ ...row!, person: { ...row!.person!, known: true, version: 9 } }];
      await store.commit(commitOf(await store.lastCommit(), { members }));
      const other = await verify({ ...comparing, into: await rig.openStore() });
      expect(other.differences).toHaveLength(2);
      expect(other.differences.join()).toContain('"zoe"');
      const small = await verify({ ...comparing, into: await rig.openStore(), comparedMax: 200 });
      expect(small.differences).toEqual([
        "and further lines that exceed the memory of the comparison",
      ]);
    },
  );
}

/** The order of several links determines which link has the outcome `already_one`. */
function withoutOrderOfLinks(line: string): string {
  return line.replace(/"outcome":"(merged|already_one)"/, '"outcome":"one"');
}

function setFrame(set: Record<string, unknown>, ids: readonly string[], nth: number): TestFrame {
  const events = ids.map((distinctId, at) => ({
    uuid: uuidOf(nth * 10_000 + at),
    distinctId,
    receivedAtMs: 1_800_000_000_000 + nth,
    set,
  }));
  return { lane: "live", projectId: "shop", messageId: `set-${nth}`, events };
}

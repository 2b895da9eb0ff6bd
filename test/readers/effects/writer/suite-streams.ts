import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DiscardPolicy, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test, vi } from "vitest";
import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";
import {
  appliedOf,
  RebuildError,
  rebuild,
} from "../../../../src/readers/effects/writer/rebuild.ts";
import { verify } from "../../../../src/readers/effects/writer/verify.ts";
import { apart, dumpOf, untilApplied } from "../../../kit/effects-dumps.ts";
import { startNatsServer } from "../../../kit/nats-server.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { makeStreams, storeFrames, type TestFrame, uuidOf } from "../../../kit/stored-events.ts";
import { commitOf } from "../store/row-kit.ts";
import { deleteStreams, goneAfterTest, storeWith, type WriterRig } from "./writer-kit.ts";

const live = "PENSTOCK_LIVE_0";

export function streamTests(rig: WriterRig): void {
  const { connection, databases, nats, testWithSqlite } = rig;

  async function incidentsOf(store: EffectsStore): Promise<unknown[]> {
    const incidents = await store.reader.incidents(10);
    return incidents.map(({ stream, kind, messages }) => [stream, kind, messages]);
  }

  async function epochsOf(store: EffectsStore): Promise<Record<string, number>> {
    const applied = await store.reader.applied();
    return Object.fromEntries(applied.map(({ stream, epoch }) => [stream, epoch]));
  }

  async function apartFromWhole(store: EffectsStore, frames: TestFrame[]): Promise<string[]> {
    const dump = await dumpOf(store.reader);
    await deleteStreams(connection, nats);
    await makeStreams(connection);
    await storeFrames(connection, frames);
    const without = dump.filter((line) => !line.startsWith('{"table":"incidents"'));
    expect(dump.length).toBeGreaterThan(without.length);
    return apart(await rig.undisturbed(), without);
  }

  async function copyOfStreams(): Promise<() => Promise<void>> {
    const copy = goneAfterTest(mkdtempSync(path.join(tmpdir(), "penstock-test-copy-")));
    await nats.stop();
    cpSync(nats.storeDir, copy, { recursive: true });
    await nats.restart();
    return async () => {
      await nats.stop();
      rmSync(nats.storeDir, { recursive: true });
      cpSync(copy, nats.storeDir, { recursive: true });
      await nats.restart();
    };
  }

  function liveFrames(random: () => number, count: number): TestFrame[] {
    return randomFrames(random, { count: 2 * count }).filter(({ lane }) => lane === "live");
  }

  test("applies the events of a recreated stream and keeps earlier effects", async () => {
    const store = await rig.openStore();
    const random = numbersFrom(12);
    const writer = rig.startWriter({ store });
    const [before, after] = [liveFrames(random, 15), liveFrames(random, 15)];
    await storeFrames(connection, before);
    await untilApplied(store.reader, connection);
    await deleteStreams(connection, nats);
    await makeStreams(connection);
    await storeFrames(connection, after);
    await expect.poll(() => incidentsOf(store)).toEqual([[live, "stream_made_anew", 0]]);
    await untilApplied(store.reader, connection);
    await writer.close();
    expect(await apartFromWhole(store, [...before, ...after])).toEqual([]);
  });

  test("applies nothing twice after a restore of an older copy", async () => {
    const lostCount = 10;
    const store = await rig.openStore();
    const random = numbersFrom(8);
    const writer = rig.startWriter({ store });
    const before = randomFrames(random, { count: 30 });
    const lost = randomFrames(random, { count: lostCount });
    const later = randomFrames(random, { count: 30 });
    const base = { uuid: "00000000-0000-4000-8000-00000000ffff", distinctId: "ahead" };
    const ahead = { ...base, receivedAtMs: Date.now() + 1_800_000 };
    const first = { projectId: "p0", messageId: "ahead", events: [ahead] } as const;
    before.push({ ...first, lane: "live" }, { ...first, lane: "historical" });
    await storeFrames(connection, before);
    const putBack = await copyOfStreams();
    await storeFrames(connection, lost);
    await untilApplied(store.reader, connection);
    await putBack();
    await storeFrames(connection, later);
    await untilApplied(store.reader, connection);
    await writer.close();
    const kinds = (await store.reader.incidents(10)).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(["tail_lost"]));
    // A rebuild cannot compute the effects of lost messages, and reports that.
    const applied = await appliedOf(store.reader);
    const rebuilding = { connection, prefix: "penstock", applied };
    const into = await rig.openStore();
    await expect(rebuild({ ...rebuilding, into })).rejects.toThrow(
      `the streams no longer have ${lostCount} of the applied messages`,
    );
    const { missing, messages } = await rebuild({ ...rebuilding, into, acceptMissing: true });
    expect({ missing, messages }).toEqual({ missing: lostCount, messages: 62 });
    expect(await apartFromWhole(store, [...before, ...lost, ...later])).toEqual([]);
  });

  testWithSqlite(
    "counts events of an older copy once, even if a request makes it read the copy again",
    async () => {
      const store = await rig.openStore();
      const random = numbersFrom(18);
      const before = randomFrames(random, { count: 40 });
      // More messages than a position's trail holds.
      const lost = liveFrames(random, 800);
      const later = randomFrames(random, { count: 40 });
      expect(lost.length).toBeGreaterThan(1_000);
      await storeFrames(connection, before);
      const putBack = await copyOfStreams();
      const writer = rig.startWriter({ store });
      await storeFrames(connection, lost);
      await untilApplied(store.reader, connection);
      await writer.close();
      await putBack();
      const stopped = rig.startWriter({ store });
      await expect.poll(() => stopped.status(0).reasons.join()).toContain("it is unknown whether");
      const unknown = [live, "place_unknown", expect.any(Number)];
      await expect.poll(() => incidentsOf(store)).toContainEqual(unknown);
      await stopped.close();
      const accepting = rig.startWriter({ store, acceptExpired: true, batchEventsMax: 5 });
      await expect.poll(async () => (await epochsOf(store))[live]).toBe(2);
      await accepting.close();
      await storeFrames(connection, later);
      const last = rig.startWriter({ store });
      await untilApplied(store.reader, connection);
      await last.close();
      const found = await apartFromWhole(store, [...before, ...lost, ...later]);
      expect(found.filter((line) => line.includes('"usage_daily"'))).toEqual([]);
    },
  );

  testWithSqlite(
    "counts all events of a stream that is recreated instead of restored",
    async () => {
      const store = await rig.openStore();
      const random = numbersFrom(19);
      const [before, lost, later] = [
        liveFrames(random, 30),
        liveFrames(random, 15),
        liveFrames(random, 15),
      ];
      const first = rig.startWriter({ store });
      await storeFrames(connection, before);
      await untilApplied(store.reader, connection);
      await (await jetstreamManager(connection)).streams.purge(live);
      const putBack = await copyOfStreams();
      await storeFrames(connection, lost);
      await untilApplied(store.reader, connection);
      await first.close();
      await putBack();
      for (let nth = 0; nth < 2; nth++) {
        const stopped = rig.startWriter({ store });
        await expect
          .poll(() => stopped.status(0).reasons.join())
          .toContain("it is unknown whether");
        const unknown = [live, "place_unknown", before.length];
        await expect.poll(() => incidentsOf(store)).toEqual([unknown]);
        await stopped.close();
      }
      await deleteStreams(connection, nats);
      await makeStreams(connection);
      const restarted = rig.startWriter({ store });
      await expect.poll(async () => (await epochsOf(store))[live]).toBe(2);
      await restarted.close();
      await storeFrames(connection, later);
      const last = rig.startWriter({ store });
      await untilApplied(store.reader, connection);
      await last.close();
      expect(later.length).toBeLessThan(before.length);
      expect(await apartFromWhole(store, [...before, ...lost, ...later])).toEqual([]);
    },
  );

  test("stops at messages that expired unread", async () => {
    const store = await rig.openStore();
    const random = numbersFrom(9);
    const writer = rig.startWriter({ store });
    const [before, unread] = [liveFrames(random, 10), liveFrames(random, 10)];
    await storeFrames(connection, before);
    await untilApplied(store.reader, connection);
    await writer.close();
    await storeFrames(connection, unread);
    const gone = unread.length - 1;
    const manager = await jetstreamManager(connection);
    await manager.streams.update(live, { discard: DiscardPolicy.Old, max_msgs: 1 });
    const stopped = rig.startWriter({ store });
    await expect.poll(() => stopped.status(0).reasons.join()).toContain(`${gone} messages left`);
    await expect.poll(() => incidentsOf(store)).toEqual([[live, "expired_unread", gone]]);
    await stopped.close();
    const accepting = rig.startWriter({ store, acceptExpired: true });
    await untilApplied(store.reader, connection);
    await accepting.close();
    expect(await incidentsOf(store)).toEqual([
      [live, "expired_unread", gone],
      [live, "expired_unread", gone],
    ]);
    expect(await apartFromWhole(store, [...before, unread.at(-1)!])).toEqual([]);
  });

  test("copies only unpublished spike announcements into a rebuilt database", async () => {
    const store = await rig.openStore();
    const writer = rig.startWriter({ store });
    await storeFrames(connection, liveFrames(numbersFrom(19), 5));
    await untilApplied(store.reader, connection);
    await writer.close();
    const outbox = ["z", "a"].map((messageId) => ({ messageId, subject: "s", json: "{}" }));
    await store.commit(commitOf(await store.lastCommit(), { outbox }));
    const into = await rig.openStore();
    const applied = await appliedOf(store.reader);
    await rebuild({ connection, prefix: "penstock", applied, into });
    expect(await into.reader.unpublished()).toEqual(outbox);
  });

  // The reading of the streams does not depend on the database.
  if (databases.kind === "SQLite") {
    test("counts missing messages in the middle of a stream in a rebuild", async () => {
      const store = await rig.openStore();
      const writer = rig.startWriter({ store });
      const random = numbersFrom(13);
      const lanes = { live: liveFrames(random, 10), historical: [] as TestFrame[] };
      lanes.historical = lanes.live.map((frame) => ({ ...frame, lane: "historical" }));
      for (const frames of Object.values(lanes)) {
        await storeFrames(connection, frames);
        await untilApplied(store.reader, connection);
      }
      await writer.close();
      const manager = await jetstreamManager(connection);
      const applied = await appliedOf(store.reader);
      const common = { connection, prefix: "penstock", applied };
      const total = lanes.live.length + lanes.historical.length;
      const purged = await rig.openStore();
      let isPurged = false;
      const purgingOnce = storeWith(purged, {
        async commit(commit) {
          if (!isPurged) await manager.streams.deleteMessage("PENSTOCK_HISTORICAL_0", 3);
          isPurged = true;
          await purged.commit(commit);
        },
      });
      // At the first commit, one frame of each stream is in memory.
      const few = { bytesMax: 1, batchEventsMax: 1 };
      await expect(rebuild({ ...common, ...few, into: purgingOnce })).rejects.toThrow(
        "1 messages left the streams before the rebuild read them",
      );
      await manager.streams.deleteMessage(live, 2);
      const into = await rig.openStore();
      await expect(rebuild({ ...common, into })).rejects.toThrow(
        "no longer have 2 of the applied messages",
      );
      expect(await into.lastCommit()).toBe(0);
      const accepted = await rebuild({ ...common, into, acceptMissing: true });
      expect(accepted).toEqual({ messages: total - 2, missing: 2 });
    });

    test("reports deleted messages as missing when it verifies a database", async () => {
      await storeFrames(connection, liveFrames(numbersFrom(17), 12));
      const manager = await jetstreamManager(connection);
      for (const sequence of [3, 4, 7]) await manager.streams.deleteMessage(live, sequence);
      const store = await rig.openStore();
      const writer = rig.startWriter({ store });
      await untilApplied(store.reader, connection);
      await writer.close();
      const comparing = { connection, prefix: "penstock", reader: store.reader };
      const failed = verify({ ...comparing, into: await rig.openStore() });
      await expect(failed).rejects.toThrow("no longer have 3 of the applied messages");
      const accepted = { ...comparing, into: await rig.openStore(), acceptMissing: true };
      expect(await verify(accepted)).toMatchObject({ messages: 14, missing: 3, differences: [] });
      await manager.streams.deleteMessage(live, 5);
      const more = { ...comparing, into: await rig.openStore(), acceptMissing: true };
      expect(await verify(more)).toMatchObject({ messages: 13, missing: 4 });
    });

    test("is not ready until NATS has listed the streams", async () => {
      const refusing = await startNatsServer({
        extraConfig: `authorization { users: [{ user: effects, password: secret, permissions: {
          publish: { deny: "$JS.API.STREAM.NAMES" } } }] }`,
      });
      onTestFinished(() => refusing.remove());
      const user = { user: "effects", pass: "secret" };
      const limited = await connect({ servers: refusing.url, ...user });
      onTestFinished(() => limited.close());
      const writer = rig.startWriter({ store: await rig.openStore(), connection: limited });
      await expect
        .poll(() => writer.status(0).reasons.join())
        .toMatch(/^cannot list the streams: .*STREAM\.NAMES/);
      await writer.close();
    });

    test("ends a rebuild that is interrupted or makes no progress", async () => {
      const store = await rig.openStore();
      const writer = rig.startWriter({ store });
      await storeFrames(connection, randomFrames(numbersFrom(23), { count: 20 }));
      await untilApplied(store.reader, connection);
      await writer.close();
      const applied = await appliedOf(store.reader);
      const common = { connection, prefix: "penstock", applied, batchEventsMax: 1, bytesMax: 1 };
      const stop = new AbortController();
      let commits = 0;
      const onProgress = (): void => {
        commits++;
        stop.abort();
      };
      const stopped = { into: await rig.openStore(), signal: stop.signal, onProgress };
      await expect(rebuild({ ...common, ...stopped })).rejects.toThrow("interrupted");
      expect(commits).toBe(1);
      const into = await rig.openStore();
      const stuck = storeWith(into, {
        // Advances the clock by a minute, because on a busy host a step may take a second.
        commit: () => {
          const now = performance.now.bind(performance);
          const spy = vi.spyOn(performance, "now").mockImplementation(() => now() + 60_000);
          onTestFinished(() => spy.mockRestore());
          return new Promise<void>(() => {});
        },
      });
      await expect(rebuild({ ...common, into: stuck, stillMsMax: 60_000 })).rejects.toThrow(
        "no progress for 60 s: the new database does not accept writes",
      );
      const full = storeWith(into, { commit: () => Promise.reject(new Error("the disk is full")) });
      await expect(rebuild({ ...common, into: full })).rejects.toThrow("the disk is full");
    });

    test("completes a rebuild with many large frames in two partitions", async () => {
      await makeStreams(connection, 2);
      const store = await rig.openStore();
      const writer = rig.startWriter({ store });
      const text = "x".repeat(900_000);
      const frames = Array.from({ length: 24 }, (_, nth): TestFrame => {
        const uuid = uuidOf(nth);
        const event = {
          uuid,
          distinctId: "d",
          receivedAtMs: 1_800_000_000_000,
          properties: { text },
        };
        const lane = nth % 3 === 0 ? "historical" : "live";
        return {
          lane,
          partition: nth % 2,
          projectId: `p${nth % 2}`,
          messageId: `large-${nth}`,
          events: [event],
        };
      });
      await storeFrames(connection, frames);
      await untilApplied(store.reader, connection);
      await writer.close();
      const into = await rig.openStore();
      const options = { connection, prefix: "penstock", reader: store.reader, into };
      const verified = await verify({ ...options, bytesMax: 2_097_152, stillMsMax: 20_000 });
      expect(verified).toEqual({ messages: 24, missing: 0, differences: [], explained: [] });
    });

    test("continues a rebuild when NATS returns", async () => {
      const store = await rig.openStore();
      const writer = rig.startWriter({ store });
      await storeFrames(connection, randomFrames(numbersFrom(11), { count: 40 }));
      await untilApplied(store.reader, connection);
      await writer.close();
      const applied = await appliedOf(store.reader);
      // The memory is so small that some frames have not arrived when the first batch is committed.
      const few = { batchEventsMax: 10, bytesMax: 1 };
      const common = { connection, prefix: "penstock", applied, ...few };
      let stopped: Promise<void> | undefined;
      const stopOnce = (): void => {
        stopped ??= nats.stop();
      };
      const other = { into: await rig.openStore(), onProgress: stopOnce };
      const failed = rebuild({ ...common, ...other, stillMsMax: 1_000 });
      await expect(failed).rejects.toThrow(
        /^no progress for 1 s: .*PENSTOCK_\w+ is read up to \d+ of \d+/,
      );
      await expect(failed).rejects.toThrow(RebuildError);
      await stopped;
      await nats.restart();
      await untilApplied(store.reader, connection);
      let restarted: Promise<void> | undefined;
      const restartOnce = (): void => {
        restarted ??= nats.stop().then(() => nats.restart());
      };
      const into = await rig.openStore();
      await rebuild({ ...common, into, onProgress: restartOnce });
      await restarted;
      expect(apart(await dumpOf(into.reader), await dumpOf(store.reader))).toEqual([]);
    });
  }

  test("verifies a database against the streams line by line", async () => {
    const store = await rig.openStore();
    const writer = rig.startWriter({ store });
    await storeFrames(connection, randomFrames(numbersFrom(10), { count: 30 }));
    await untilApplied(store.reader, connection);
    await writer.close();
    const comparing = { connection, prefix: "penstock", reader: store.reader };
    const same = await verify({ ...comparing, into: await rig.openStore() });
    expect(same).toEqual({ messages: 30, missing: 0, differences: [], explained: [] });
    const groupTypes = [{ projectId: "p9", type: "planet" }];
    await store.commit(commitOf(await store.lastCommit(), { groupTypes }));
    const other = await verify({ ...comparing, into: await rig.openStore() });
    expect(other.differences).toEqual([expect.stringMatching(/^- .*planet/)]);
  });
}

import { expect, test } from "vitest";
import type { StorePlace } from "../../../../src/readers/effects/store/open.ts";
import { type EffectsStore, FencedError } from "../../../../src/readers/effects/store/port.ts";
import type { Commit } from "../../../../src/readers/effects/types.ts";
import type { EffectsWriterOptions } from "../../../../src/readers/effects/writer/effects-writer.ts";
import { urlOf } from "../../../kit/effects-databases.ts";
import { apart, dumpOf, untilApplied } from "../../../kit/effects-dumps.ts";
import { untilStopped } from "../../../kit/nats-server.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { silent } from "../../../kit/processes.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { storeFrames, type TestEvent, type TestFrame, uuidOf } from "../../../kit/stored-events.ts";
import { commitOf } from "../store/row-kit.ts";
import type { WriterRig } from "./writer-kit.ts";
import { writerProcess } from "./writer-process.ts";

function disturb(
  store: EffectsStore,
  before: (commit: Commit, undisturbed: EffectsStore["commit"]) => Promise<void>,
): void {
  const undisturbed = store.commit.bind(store);
  store.commit = async (commit) => {
    await before(commit, undisturbed);
    await undisturbed(commit);
  };
}

/**
 * Several requests of a batch fail at the same time, so code that waits for only one of them fails.
 */
function failTogether(store: EffectsStore): void {
  const members = store.members.bind(store);
  const activeIds = store.activeIds.bind(store);
  const failing = [1, 6, 12];
  let asked = 0;
  store.members = async (...question) => {
    if (failing.includes(++asked)) throw new Error("the database is away");
    return await members(...question);
  };
  store.activeIds = async (...question) => {
    const answer = await activeIds(...question);
    if (failing.includes(asked)) throw new Error("the database is away");
    return answer;
  };
}

/** With enough links, the rows of the frame are written in parts. */
function manyLinks(lane: TestFrame["lane"], count: number): TestFrame {
  const identify = { event: "$identify", kind: "identify" } as const;
  const events = Array.from({ length: count }, (_, at): TestEvent => {
    const pair = Math.floor(at / 4);
    const [a, b] = [`a-${pair}`, `b-${pair}`];
    const receivedAtMs = Date.UTC(2026, 10, 20, 12) + at;
    const uuid = uuidOf(1e9 + at);
    const base = { uuid, receivedAtMs, set: { at } };
    const links = [
      { ...identify, distinctId: a, anonymous: `c-${pair}`, hours: 3 },
      { ...identify, distinctId: b, anonymous: `d-${pair}`, hours: 2 },
      { ...identify, distinctId: a, anonymous: b, hours: 0 },
      { event: "$merge_dangerously", kind: "custom", distinctId: a, alias: b, hours: 1 },
    ] as const;
    const { hours, ...link } = links[at % 4]!;
    const properties =
      "alias" in link ? { alias: link.alias } : { $anon_distinct_id: link.anonymous };
    const { event, kind, distinctId } = link;
    return {
      ...base,
      event,
      kind,
      distinctId,
      properties,
      timeMs: receivedAtMs - hours * 3_600_000,
    };
  });
  return { lane, projectId: lane, messageId: lane, events };
}

export function failureTests(rig: WriterRig): void {
  const { connection, databases, nats } = rig;

  async function openInItsPlace(place: StorePlace): Promise<EffectsStore> {
    for (let tries = 1; ; tries++) {
      await databases.breakLock(place);
      try {
        return await rig.openStore(place);
      } catch (error) {
        if (tries === 5) throw error;
      }
    }
  }

  // This test must be the first, because it copies all databases of a server.
  test("continues after the database is restored to an older copy", async () => {
    const place = await databases.newDatabase();
    const random = numbersFrom(14);
    const applyMore = async (): Promise<void> => {
      await storeFrames(connection, randomFrames(random, { count: 15 }));
      const store = await rig.openStore(place);
      const writer = rig.startWriter({ store, batchEventsMax: 10 });
      await untilApplied(store.reader, connection);
      await writer.close();
      await store.close();
    };
    await applyMore();
    const copy = await databases.copy(place);
    await applyMore();
    await databases.restore(place, copy);
    await applyMore();
    const reader = await rig.openReader(place);
    expect(await reader.incidents(10)).toEqual([]);
    expect(apart(await rig.undisturbed(), await dumpOf(reader))).toEqual([]);
  });

  test("recovers from failed commits and requests", async () => {
    let nth = 0;
    const store = await rig.openStore();
    failTogether(store);
    disturb(store, async (commit, undisturbed) => {
      nth++;
      if (nth % 3 === 0) throw new Error("the database is away");
      if (nth % 5 === 0) {
        await undisturbed(commit);
        throw new Error("the answer was lost");
      }
    });
    await storeFrames(connection, randomFrames(numbersFrom(5), { count: 40 }));
    const writer = rig.startWriter({ store, batchEventsMax: 15 });
    await untilApplied(store.reader, connection);
    await writer.close();
    expect(nth).toBeGreaterThan(6);
    expect(apart(await rig.undisturbed(), await dumpOf(store.reader))).toEqual([]);
  });

  test("stores a frame completely or not at all", async () => {
    await storeFrames(connection, [manyLinks("live", 2_600), manyLinks("historical", 400)]);
    const small = { changedBytesMax: 50_000, people: { cacheBytesMax: 0 } };
    let writes = 0;
    const failing = await rig.openStore();
    disturb(failing, async (commit, undisturbed) => {
      const nth = ++writes;
      if ([2, 5, 9].includes(nth)) throw new Error("the database is away");
      if ([1, 7, 12].includes(nth)) {
        await undisturbed(commit);
        throw new Error("the answer was lost");
      }
    });
    const writer = rig.startWriter({ store: failing, ...small });
    await untilApplied(failing.reader, connection);
    await writer.close();
    expect(writes).toBeGreaterThan(8);
    const whole = await rig.undisturbed();
    expect(whole.some((line) => line.includes("refused_both_known"))).toBe(true);
    expect(apart(whole, await dumpOf(failing.reader))).toEqual([]);

    const place = await databases.newDatabase();
    for (const lines of [5, 3, 4]) {
      const { killedAfter } = writerProcess(nats.url, place, 10_000, small.changedBytesMax);
      await killedAfter(lines);
    }
    expect(apart(whole, await rig.undisturbed({}, place))).toEqual([]);
  });

  test("reduces the size of the next commits if commits fail repeatedly", async () => {
    const store = await rig.openStore();
    // Simulates a server or proxy that ends long transactions.
    disturb(store, async ({ members }) => {
      if (members.length > 15) throw new Error("the connection was lost");
    });
    const frames = Array.from({ length: 8 }, (_, nth): TestFrame => {
      const events = Array.from({ length: 5 }, (_, at): TestEvent => {
        const uuid = uuidOf(5 * nth + at);
        return { uuid, distinctId: uuid, receivedAtMs: 1_800_000_000_000 };
      });
      return { lane: "live", projectId: "slow", messageId: `cut-${nth}`, events };
    });
    await storeFrames(connection, frames);
    const writer = rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    await writer.close();
    expect(apart(await rig.undisturbed(), await dumpOf(store.reader))).toEqual([]);
  });

  test("continues after an external commit while it holds the lock", async () => {
    let nth = 0;
    const store = await rig.openStore();
    disturb(store, async (commit, undisturbed) => {
      if (++nth === 3) await undisturbed(commitOf(0, { after: commit.after, number: 7 }));
    });
    await storeFrames(connection, randomFrames(numbersFrom(16), { count: 40 }));
    const writer = rig.startWriter({ store, batchEventsMax: 15 });
    await untilApplied(store.reader, connection);
    expect(nth).toBeGreaterThan(3);
    expect(writer.status(0).reasons).toEqual([]);
    await writer.close();
    expect(apart(await rig.undisturbed(), await dumpOf(store.reader))).toEqual([]);
  });

  test("stops if another writer commits before each of its commits", async () => {
    let number = 0;
    const store = await rig.openStore();
    disturb(store, async ({ after }, undisturbed) => {
      await undisturbed(commitOf(0, { after, number: ++number }));
    });
    await storeFrames(connection, randomFrames(numbersFrom(6), { count: 5 }));
    const writer = rig.startWriter({ store });
    await expect(writer.ended()).rejects.toThrow(FencedError);
    expect(writer.status(0).reasons[0]).toContain("another writer is active");
    expect(number).toBe(2);
  });

  test("continues in one of two processes if the lock is broken", async () => {
    const place = await databases.newDatabase();
    await storeFrames(connection, randomFrames(numbersFrom(13), { count: 60 }));
    const first = rig.startWriter({ store: await rig.openStore(place), batchEventsMax: 5 });
    await expect.poll(() => first.commits).toBeGreaterThan(1);
    const store = await openInItsPlace(place);
    const second = rig.startWriter({ store, batchEventsMax: 5 });
    await untilApplied(store.reader, connection);
    await Promise.all([first.close(), second.close()]);
    expect(apart(await rig.undisturbed(), await dumpOf(store.reader))).toEqual([]);
  });

  test("changes nothing after it lost its lock while frozen", async () => {
    const place = await databases.newDatabase();
    const random = numbersFrom(1);
    await storeFrames(connection, randomFrames(random, { count: 10 }));
    const frozen = writerProcess(nats.url, place, 50);
    await frozen.said(/^committed$/);
    const reader = await rig.openReader(place);
    await untilApplied(reader, connection);
    frozen.child.kill("SIGSTOP");
    untilStopped(frozen.child.pid);
    await expect(rig.openStore(place)).rejects.toThrow(/another/);
    await storeFrames(connection, randomFrames(random, { count: 10 }));
    const store = await openInItsPlace(place);
    const second = rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    // In SQLite the next commit is rejected. In PostgreSQL the connection and the lock are lost.
    const noticed = frozen.said(/^ended: FencedError|^warned: .*PostgreSQL/);
    frozen.child.kill("SIGCONT");
    await storeFrames(connection, randomFrames(random, { count: 10 }));
    await noticed;
    await untilApplied(store.reader, connection);
    await second.close();
    expect(apart(await rig.undisturbed(), await dumpOf(reader))).toEqual([]);
  });

  const server = databases.postgres;
  if (server === undefined) return;
  test("reduces the size of later transactions if one takes too long", async () => {
    const place = await databases.newDatabase();
    const store = await rig.openStore(place);
    await asked(
      urlOf(place),
      `CREATE FUNCTION cancel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF (SELECT count(*) FROM new) > 15 THEN RAISE EXCEPTION SQLSTATE '57014'; END IF;
         RETURN NULL; END $$;
       CREATE TRIGGER slow AFTER INSERT ON penstock_effects.members
         REFERENCING NEW TABLE AS new FOR EACH STATEMENT EXECUTE FUNCTION cancel()`,
    );
    const frames = Array.from({ length: 40 }, (_, nth): TestFrame => {
      const events = Array.from({ length: 5 }, (_, at): TestEvent => {
        const uuid = uuidOf(5 * nth + at);
        return { uuid, distinctId: uuid, receivedAtMs: 1_800_000_000_000 };
      });
      return { lane: "live", projectId: "slow", messageId: `slow-${nth}`, events };
    });
    await storeFrames(connection, frames);
    const said: [unknown, readonly string[]][] = [];
    const log: EffectsWriterOptions["log"] = {
      ...silent,
      warn: (fields: { reason?: unknown }) =>
        void said.push([fields.reason, writer.status(0).reasons]),
    };
    const writer = rig.startWriter({ store, log });
    await untilApplied(store.reader, connection);
    expect(said[0]?.[0]).toMatch(
      /the statement timed out.*\. The next transactions have at most \d+/,
    );
    expect(said[0]?.[1]).toEqual([said[0]?.[0]]);
    expect(writer.status(0).reasons).toEqual([]);
    await writer.close();
    expect(apart(await rig.undisturbed(), await dumpOf(store.reader))).toEqual([]);
  });

  test("loses nothing if the server is killed repeatedly within transactions", async () => {
    const store = await rig.openStore();
    const writer = rig.startWriter({ store, batchEventsMax: 8 });
    const frames = randomFrames(numbersFrom(15), { count: 60 });
    for (const [nth, how] of (["kill", "stop", "kill"] as const).entries()) {
      const before = writer.commits;
      await storeFrames(connection, frames.slice(20 * nth, 20 * (nth + 1)));
      await expect.poll(() => writer.commits).toBeGreaterThan(before);
      await server[how]();
      await server.restart();
    }
    await untilApplied(store.reader, connection);
    await writer.close();
    expect(apart(await rig.undisturbed(), await dumpOf(store.reader))).toEqual([]);
  });
}

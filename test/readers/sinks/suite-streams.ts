import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import type { SinkTarget } from "../../../src/readers/sinks/sink-target.ts";
import { numbersFrom, randomFrames } from "../../kit/random-events.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../kit/stored-events.ts";
import { startSink } from "./sink-kit.ts";

const live = "PENSTOCK_LIVE_0";
const within = { timeout: 30_000 };

interface SinkPlace {
  readonly target: () => SinkTarget;
  readonly uuids: () => Promise<readonly string[]>;
  readonly kinds: () => Promise<readonly unknown[]>;
}

/** Before each test, the streams must exist and be empty. */
export function streamTests(connection: NatsConnection, newPlace: () => Promise<SinkPlace>): void {
  async function stored(seed: number): Promise<TestFrame[]> {
    const frames = randomFrames(numbersFrom(seed), { count: 20 });
    const own = frames.filter(({ lane }) => lane === "live");
    await storeFrames(connection, own);
    return own;
  }

  const sorted = (uuids: readonly string[]) => [...new Set(uuids)].sort();
  const uuidsIn = (frames: readonly TestFrame[]) =>
    sorted(frames.flatMap(({ events }) => events.map(({ uuid }) => uuid)));
  const thereIn = (place: SinkPlace) => async () =>
    sorted(await place.uuids().catch((): readonly string[] => []));
  const kindsIn = (place: SinkPlace) => () => place.kinds().catch((): readonly unknown[] => []);

  test("a sink reads a recreated stream from its start", async () => {
    const place = await newPlace();
    startSink(connection, place.target());
    const before = await stored(1);
    await expect.poll(thereIn(place), within).toEqual(uuidsIn(before));
    const { streams, consumers } = await jetstreamManager(connection);
    const [consumer] = await consumers.list(live).next();
    expect(consumer?.name).toMatch(/^penstock_sink_/);
    await streams.delete(live);
    await makeStreams(connection);
    const after = await stored(2);
    await expect.poll(thereIn(place), within).toEqual(uuidsIn([...before, ...after]));
    await expect.poll(kindsIn(place), within).toEqual(["stream_made_anew"]);
  });

  test("a sink stops at messages that expired unread", async () => {
    const place = await newPlace();
    const target = place.target();
    const first = startSink(connection, target);
    const before = await stored(3);
    await expect.poll(thereIn(place), within).toEqual(uuidsIn(before));
    await first.writer.close();
    await target.close();
    await stored(4);
    await (await jetstreamManager(connection)).streams.purge(live);
    const after = await stored(5);

    // A second start reports the same incident again.
    for (const _ of [1, 2]) {
      const stopped = place.target();
      const sink = startSink(connection, stopped);
      const reasons = () => sink.writer.status(Date.now()).reasons.join();
      const wayOut = /left the stream before .*penstock sink.*--accept-expired/;
      await expect.poll(reasons, within).toMatch(wayOut);
      await expect.poll(() => sink.counts.commits, within).toBeGreaterThan(0);
      await sink.writer.close();
      await stopped.close();
      expect(await place.kinds()).toEqual(["expired_unread"]);
      expect(await thereIn(place)()).toEqual(uuidsIn(before));
    }

    startSink(connection, place.target(), { acceptExpired: true });
    await expect.poll(thereIn(place), within).toEqual(uuidsIn([...before, ...after]));
    await expect.poll(kindsIn(place), within).toEqual(["expired_unread", "expired_unread"]);
  });
}

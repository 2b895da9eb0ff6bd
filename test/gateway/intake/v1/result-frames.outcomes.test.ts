import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { UuidList } from "../../../../src/gateway/intake/v1/uuids.ts";
import { Meter } from "../../../../src/gateway/projects/quota/meter.ts";
import type { FrameOutcome } from "../../../../src/gateway/publish/port.ts";
import type { ProjectShares } from "../../../../src/gateway/streams/project-shares.ts";
import { costOf, waitMsOf } from "../../../kit/cost-of.ts";
import { dropped, event, intakeOnFrames, settleAll } from "../frames-kit.ts";

describe("the results of a v1 request", () => {
  test("state the outcome of each event in any order of acknowledgements", async () => {
    const { frames, given, send } = intakeOnFrames();
    const batch = Array.from({ length: 30 }, (_, index) =>
      index % 10 === 3 ? dropped() : event(60_000),
    );
    const { answer, work } = send(batch);
    const all = ["stored", "refused", "duplicate", "unknown"] as const;
    await settleAll(frames, work, (at) => all[at % all.length] ?? "stored");
    const { results, hasRetry } = await answer;
    const said = new Map<string, unknown>();
    const retries = {
      refused: { result: "retry", details: "store_full" },
      unknown: { result: "retry", details: "timeout" },
    };
    for (const [at, { uuids }] of frames.entries()) {
      const outcome = all[at % all.length] ?? "stored";
      for (const uuid of uuids)
        said.set(uuid, outcome in retries ? retries[outcome as "refused"] : { result: "ok" });
    }
    const expected = batch.map(({ uuid, event: name }) =>
      name === "" && results?.[uuid]?.result === "drop"
        ? { result: "drop", details: "no_event" }
        : (said.get(uuid) ?? { result: "retry", details: "timeout" }),
    );
    expect(Object.values(results ?? {})).toEqual(expected);
    expect(Object.keys(results ?? {})).toEqual(batch.map(({ uuid }) => uuid));
    expect(hasRetry).toBe(true);
    expect(said.size).toBeGreaterThan(8);
    expect(given.givenBack).toBe(1);
  });

  test("state why the remaining events are not published after a failure", async () => {
    const batch = Array.from({ length: 60 }, () => event(60_000));
    let nowMs = 0;
    let isFull = false;
    const shares: ProjectShares = {
      addUnderWay() {},
      stored: () => {
        isFull = true;
      },
      refusalOf: () => (isFull ? ({ code: "project_full", detail: "" } as const) : undefined),
    };
    const late = (at: number) => {
      if (at === 7) nowMs = 30_000;
      return "stored" as const;
    };
    for (const { code, options, outcomeOf } of [
      {
        code: "store_full",
        options: {},
        outcomeOf: (at: number) => (at === 0 ? "stored" : "refused"),
      },
      {
        code: "timeout",
        options: {},
        outcomeOf: (at: number) => (at === 0 ? "stored" : "unknown"),
      },
      { code: "project_full", options: { shares }, outcomeOf: () => "stored" },
      { code: "timeout", options: { monotonicMs: () => nowMs }, outcomeOf: late },
    ] as {
      code: string;
      options: Parameters<typeof intakeOnFrames>[0];
      outcomeOf: (at: number) => FrameOutcome;
    }[]) {
      const { frames, send } = intakeOnFrames(options);
      const { answer, work } = send(batch);
      await settleAll(frames, work, outcomeOf);
      const { results } = await answer;
      const placed = frames.flatMap(({ uuids }) => uuids);
      expect(placed.length).toBeLessThan(batch.length);
      for (const { uuid } of batch.slice(placed.length)) {
        expect(results?.[uuid]).toEqual({ result: "retry", details: code });
      }
    }
  });

  test("are counted for stored events only", async () => {
    const { frames, counted, send } = intakeOnFrames();
    const timeless = (textBytes: number) => ({ ...event(textBytes), timestamp: undefined });
    const refused = send([timeless(0), dropped()]);
    frames[0]?.settle("refused");
    expect((await refused.answer).problem?.code).toBe("store_full");
    expect(counted).toEqual({});
    const batch = [...Array.from({ length: 7 }, () => timeless(60_000)), dropped()];
    const { answer, work } = send(batch);
    await settleAll(frames, work, (at) => (at === 1 ? "stored" : "refused"), 1);
    await answer;
    const stored = frames[1]?.uuids.length ?? 0;
    expect(stored).toBeLessThan(7);
    expect(counted).toEqual({ none: stored, missing_timestamp: stored, no_event: 1 });
  });

  test("are replaced by an error if nothing is stored", async () => {
    const { frames, send } = intakeOnFrames();
    for (const [outcome, code] of [
      ["refused", "store_full"],
      ["unknown", "timeout"],
    ] as const) {
      const { answer } = send([event(), dropped()]);
      frames.at(-1)?.settle(outcome);
      expect((await answer).problem?.code).toBe(code);
    }
  });

  test("count dropped events once even if other events must be retried", async () => {
    const { frames, given, send } = intakeOnFrames();
    const { answer, work } = send([dropped(), ...Array.from({ length: 10 }, () => event(60_000))]);
    await settleAll(frames, work, (at) => (at === 0 ? "stored" : "refused"));
    await answer;
    expect(given).toMatchObject({ dropped: 1, stored: frames[0]?.uuids.length });
  });

  test("lead to a charge for stored events and dropped bytes only", async () => {
    const burst = { events: 1_000, bytes: 10_000_000 };
    const meter = new Meter(() => 0);
    meter.setQuota({ eventsPerSecond: 1, bytesPerSecond: 10_000, burstSeconds: 1_000 });
    const { frames, send } = intakeOnFrames({ meter });
    const drops = Array.from({ length: 20 }, dropped);
    const sent = [...drops, ...Array.from({ length: 20 }, () => event(60_000))];
    const { answer, work, bodyBytes } = send(sent);
    await settleAll(frames, work, (at) => (at === 0 ? "stored" : "refused"));
    await answer;
    const stored = frames[0]?.uuids.length ?? 0;
    expect(stored).toBeGreaterThan(0);
    expect(stored).toBeLessThan(20);
    expect(meter.counts).toMatchObject({ accepted: stored, dropped: 20 });
    // The wait of a request of two bursts shows the remaining tokens.
    const leftOf = (rate: "events" | "bytes", perSecond: number) => {
      const waitMs = waitMsOf(meter, { ...costOf(0, 0), [rate]: 2 * burst[rate] });
      return burst[rate] - (waitMs * perSecond) / 1_000;
    };
    expect(leftOf("events", 1)).toBeCloseTo(burst.events - stored);
    expect(leftOf("bytes", 10_000)).toBeCloseTo(burst.bytes - (bodyBytes * (stored + 20)) / 40);
  });

  test("come from frames whose ids derive from the events", async () => {
    const { frames, send } = intakeOnFrames();
    const batch = Array.from({ length: 16 }, () => event(60_000));
    const requestId = randomUUID();
    const whole = send(batch, requestId);
    await settleAll(frames, whole.work, () => "stored");
    const [first, second] = frames;
    const from = first?.uuids.length ?? 0;
    const part = send(batch.slice(from), requestId);
    const before = frames.length;
    await settleAll(frames.slice(before), Promise.resolve(), () => "stored");
    await settleAll(frames, part.work, () => "duplicate");
    expect(frames[before]?.messageId).toBe(second?.messageId);
    const other = send(batch, randomUUID());
    const afterPart = frames.length;
    await settleAll(frames, other.work, () => "stored");
    expect(frames.slice(afterPart).map(({ messageId }) => messageId)).not.toContain(
      first?.messageId,
    );
    expect(new Set(frames.slice(0, before).map(({ messageId }) => messageId)).size).toBe(before);
  });

  test("list all events of a batch longer than the table", async () => {
    const { frames, send } = intakeOnFrames();
    const batch = Array.from({ length: 40_000 }, () => event());
    const { answer, work } = send(batch);
    await settleAll(frames, work, () => "stored");
    const { results, hasRetry } = await answer;
    expect(Object.keys(results ?? {})).toEqual(batch.map(({ uuid }) => uuid));
    expect(Object.values(results ?? {}).every(({ result }) => result === "ok")).toBe(true);
    expect(hasRetry).toBe(false);
    expect(frames.flatMap(({ uuids }) => uuids)).toEqual(batch.map(({ uuid }) => uuid));

    const before = frames.length;
    const twice = await send([...batch, { ...event(), uuid: batch[17]?.uuid }]).answer;
    expect(twice.problem?.detail).toBe("batch[40000] has the same uuid as batch[17]");
    expect(frames).toHaveLength(before);
  });

  test("request a retry of all events with the nil UUID", async () => {
    const nil = "00000000-0000-0000-0000-000000000000";
    const { frames, send } = intakeOnFrames();
    const batch = Array.from({ length: 12 }, () => ({ ...event(60_000), uuid: nil }));
    const { answer, work } = send(batch);
    await settleAll(frames, work, (at) => (at === 0 ? "refused" : "stored"));
    expect(frames.length).toBeGreaterThan(0);
    expect(await answer).toMatchObject({
      results: { [nil]: { result: "retry", details: "store_full" } },
      hasRetry: true,
    });
  });

  test("distinguish uuids that differ in one digit", () => {
    const uuids = Array.from({ length: 3_000 }, () => randomUUID() as string);
    const near = Array.from({ length: 36 }, (_, at) => {
      const digits = [..."00000000-0000-0000-0000-000000000000"];
      if (digits[at] !== "-") digits[at] = "f";
      return digits.join("");
    });
    const all = [...new Set([...uuids, ...near])];
    const list = new UuidList(all.length + 1);
    for (const uuid of all) expect(list.add(Buffer.from(`"${uuid.toUpperCase()}"`), 1)).toBe(-1);
    expect(list.length).toBe(all.length);
    const target = Buffer.alloc(36);
    for (const [index, uuid] of all.entries()) {
      list.write(target, 0, index);
      expect(target.toString()).toBe(uuid);
    }
    expect(list.add(Buffer.from(all[2_000] ?? ""), 0)).toBe(2_000);
  });
});

// If any event of a late request had been published, a retry would store it twice.

import { describe, expect, test } from "vitest";
import { compiled, ruleOf } from "../../rules/compiled-rules.ts";
import { IntakeKit, until } from "./intake-kit.ts";

const small = { name: "small", project: "a", events: 3 };
const large = { name: "large", project: "a", events: 4_000 };

describe("a request past its deadline", () => {
  test.each([small, { ...small, historical: true }, large, { ...large, historical: true }])(
    "publishes none of its events: %j",
    async (body) => {
      const kit = new IntakeKit();
      // Only a body that was inflated in the thread pool can be late on arrival. This body has a
      // hint.
      const lane = "historical" in body ? "historical" : "live";
      const sent = kit.send(body, {
        deadlineMs: kit.monotonicMs() - 1,
        hint: { projectId: "a", lane },
      });
      await sent.work;
      expect(["timeout", "overloaded"]).toContain(sent.answer);
      expect(kit.placed).toEqual([]);
    },
  );

  test("publishes none of its events if it is late when scanned", async () => {
    const kit = new IntakeKit();
    let lateMs = 0;
    kit.monotonicMs = () => lateMs;
    const sent = kit.send(large, { deadlineMs: 10, hint: { projectId: "a", lane: "live" } });
    lateMs = 10;
    await until(() => sent.answer !== undefined);
    expect(kit.placed).toEqual([]);
    expect(["timeout", "overloaded"]).toContain(sent.answer);
  });

  test.each([
    ["these events", {}],
    [
      "these events and the project's rules",
      { rules: compiled([ruleOf({ lane: "historical" }, { kind: "drop" })]) },
    ],
  ])(
    "stops publishing its events at the deadline, and names the time of %s",
    async (what, options) => {
      const kit = new IntakeKit(options);
      let monotonicMs = 0;
      let events = 0;
      kit.monotonicMs = () => monotonicMs;
      kit.onEvent = () => {
        if (++events === 500) monotonicMs = 10;
      };
      const sent = kit.send(large, { deadlineMs: 10 });
      await sent.work;
      await until(() => sent.answer !== undefined);
      expect(sent.answer).toBe("timeout");
      expect(events).toBeGreaterThanOrEqual(500);
      expect(events).toBeLessThan(3_000);
      expect(sent.detail).toBe(
        `The request timed out after ${events} of its 4000 events (10 ms for ${what}, 0 ms waiting for the store, 0 ms for other requests), so the first of them may be stored: send fewer events per request`,
      );
    },
  );

  test("names the store in its answer if the store took most of the time", async () => {
    const kit = new IntakeKit();
    let monotonicMs = 0;
    kit.monotonicMs = () => monotonicMs;
    const frames: (() => void)[] = [];
    kit.outcome = () => new Promise((resolve) => frames.push(() => resolve("stored")));
    const sent = kit.send({ ...large, events: 20_000 }, { deadlineMs: 10 });
    await until(() => frames.length > 8);
    monotonicMs = 10;
    for (const settle of frames) settle();
    await sent.work;
    kit.outcome = () => "stored";
    await until(() => sent.answer !== undefined);
    expect(sent.answer).toBe("timeout");
    expect(sent.detail).toContain("The store did not acknowledge in time");
  });
});

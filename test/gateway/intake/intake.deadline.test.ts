// A request whose deadline is past is answered 503, and what of it is not placed by then is not:
// stored all the same it would be called unknown, and its retry would store it twice.

import { describe, expect, test } from "vitest";
import { IntakeKit, until } from "./intake-kit.ts";

const small = { name: "small", project: "a", events: 3 };
const large = { name: "large", project: "a", events: 4_000 };

describe("what comes too late is not placed", () => {
  test.each([small, { ...small, historical: true }, large, { ...large, historical: true }])(
    "nothing of one that comes late: $name",
    async (body) => {
      const kit = new IntakeKit();
      // Only one that was inflated on the pool can be late when it comes, and of those there is a
      // hint.
      const lane = "historical" in body ? "historical" : "live";
      const sent = kit.send(body, {
        deadlineMs: kit.monotonicMs() - 1,
        hint: { projectId: "a", lane },
      });
      await sent.work;
      // Of a large one the scanners may say first that it came too late.
      expect(["timeout", "overloaded"]).toContain(sent.answer);
      expect(kit.placed).toEqual([]);
    },
  );

  test("nothing of a large one that is late when it is scanned", async () => {
    const kit = new IntakeKit();
    let lateMs = 0;
    kit.monotonicMs = () => lateMs;
    const sent = kit.send(large, { deadlineMs: 10, hint: { projectId: "a", lane: "live" } });
    lateMs = 10;
    await until(() => sent.answer !== undefined);
    expect(kit.placed).toEqual([]);
    expect(["timeout", "overloaded"]).toContain(sent.answer);
  });

  test("no more of a large one than was placed in time", async () => {
    const kit = new IntakeKit();
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
  });
});

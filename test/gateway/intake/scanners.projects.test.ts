import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../../src/records/native.ts";
import { bodyOf, IntakeKit, until } from "./intake-kit.ts";

describe("the scanner queue", () => {
  test("scans small history immediately while another project's large bodies wait", async () => {
    const kit = new IntakeKit();
    const large = Array.from({ length: 20 }, () =>
      kit.send({ name: "large", project: "a", events: 4_000 }),
    );
    const small = kit.send({ name: "small", project: "b", events: 3, historical: true });
    expect(small.answer).toBe("stored 3");
    await Promise.all(large.map(({ work }) => work));
    expect(large.every(({ answer }) => answer === "stored 4000")).toBe(true);
  });

  test("delays small history until the project of a large body is known", async () => {
    const kit = new IntakeKit();
    const stalled = Promise.withResolvers<void>();
    kit.outcome = (project) => (project === "a" ? stalled.promise : "stored");
    const large = kit.send({
      name: "large",
      project: "a",
      events: 40_000,
      historical: true,
      hidden: true,
    });
    const small = kit.send({ name: "small", project: "b", events: 3, historical: true });
    expect(small.answer).toBeUndefined();
    await small.work;
    expect(small.answer).toBe("stored 3");
    expect(large.answer).toBeUndefined();
    stalled.resolve();
    await large.work;
    expect(large.answer).toBe("stored 40000");
  });

  test.each([false, true])(
    "scans live bodies despite another project's slow history (key hidden: %s)",
    async (hidden) => {
      const kit = new IntakeKit();
      const stalled = Promise.withResolvers<void>();
      kit.outcome = (project) => (project === "a" ? stalled.promise : "stored");
      const first = { project: "a", historical: true, hidden, events: 10_000 };
      const history = [
        kit.send({ ...first, name: "history" }),
        ...Array.from({ length: 12 }, () => kit.send({ ...first, name: "more", events: 3 })),
        ...Array.from({ length: 3 }, () => kit.send({ ...first, name: "much" })),
      ];
      await until(() => kit.placed.length > 0);
      const small = kit.send({ name: "live", project: "b", events: 3, historical: true });
      if (hidden) await small.work;
      expect(small.answer).toBe("stored 3");
      const live = Array.from({ length: 4 }, (_, index) =>
        kit.send({ name: "live", project: "bcab"[index]!, events: 5_000 }),
      );
      for (const [index, { work }] of live.entries()) if (index !== 2) await work;
      expect([live[0]!.answer, live[1]!.answer, live[3]!.answer]).toEqual([
        "stored 5000",
        "stored 5000",
        "stored 5000",
      ]);
      expect(history.every(({ answer }) => answer === undefined)).toBe(true);
      stalled.resolve();
      await Promise.all([...history, ...live].map(({ work }) => work));
      const ordered = hidden ? ["history", "much"] : ["history", "more", "much"];
      expect(kit.order((name) => ordered.includes(name))).toEqual(ordered);
    },
  );

  test("repairs a body once even if it then waits for a scanner", async () => {
    const kit = new IntakeKit();
    const stalled = Promise.withResolvers<void>();
    kit.outcome = () => stalled.promise;
    const history = { project: "a", historical: true, events: 10_000 };
    const first = kit.send({ ...history, name: "first" });
    await until(() => kit.placed.length > 0);
    const body = bodyOf({ ...history, name: "second", hidden: true });
    body[body.lastIndexOf("xxx")] = 0xff;
    const repairedBytes = body.length + 2;
    const second = kit.send(body);
    await until(() => kit.heldBytes > 0);
    stalled.resolve();
    await Promise.all([first.work, second.work]);
    expect([first.answer, second.answer]).toEqual(["stored 10000", "stored 10000"]);
    expect(kit.heldBytes).toBe(repairedBytes);
  });

  test("fails one body if a scanner cannot be created", async () => {
    let failures = 1;
    const kit = new IntakeKit({
      createScanner(rows) {
        if (rows !== undefined && rows > 1_000 && failures-- > 0) throw new Error("no memory");
        return createNativeScanner(rows);
      },
    });
    const large = { name: "large", project: "a", events: 5_000, historical: true };
    await expect(kit.send(large).work).rejects.toThrow("no memory");
    const small = kit.send({ name: "small", project: "a", events: 2, historical: true });
    expect(small.answer).toBe("stored 2");
    const later = Array.from({ length: 8 }, () => kit.send(large));
    await Promise.all(later.map(({ work }) => work));
    expect(later.every(({ answer }) => answer === "stored 5000")).toBe(true);
  });

  test("does not read the rest of a batch after its request has failed", async () => {
    let scans = 0;
    const kit = new IntakeKit({
      createScanner(rows) {
        const scanner = createNativeScanner(rows);
        return {
          ...scanner,
          scanMoreInBackground(body) {
            scans++;
            return scanner.scanMoreInBackground(body);
          },
        };
      },
    });
    const long = { name: "long", project: "a", events: 100_000, padding: 1 };
    const stored = kit.send(long);
    await stored.work;
    expect(stored.answer).toBe("stored 100000");
    expect(scans).toBeGreaterThan(1);
    scans = 0;
    kit.outcome = () => "refused";
    const refused = kit.send(long);
    await refused.work;
    expect(refused.answer).toBe("unavailable");
    expect(scans).toBe(0);
  });

  test('answers "overloaded" for a body without a scanner by its deadline', async () => {
    const kit = new IntakeKit();
    const stalled = Promise.withResolvers<void>();
    kit.outcome = () => stalled.promise;
    const large = { name: "large", project: "a", events: 20_000 };
    const first = [kit.send(large), kit.send(large)];
    await until(() => kit.placed.length > 5_000);
    const late = kit.send(large, { deadlineMs: kit.monotonicMs() + 50 });
    await late.work;
    expect(late.answer).toBe("overloaded");
    stalled.resolve();
    await Promise.all(first.map(({ work }) => work));
    await setImmediate();
    expect(first.map(({ answer }) => answer)).toEqual(["stored 20000", "stored 20000"]);
  });

  test("delays a project's history only briefly if other projects are unknown", async () => {
    const kit = new IntakeKit();
    const stalled = Promise.withResolvers<void>();
    kit.outcome = (project) => (project === "a" ? stalled.promise : "stored");
    const flood = Array.from({ length: 24 }, () =>
      kit.send({ name: "flood", project: "a", historical: true, hidden: true, events: 5_000 }),
    );
    await until(() => kit.placed.length > 0);
    const small = kit.send({ name: "small", project: "b", events: 3, historical: true });
    await small.work;
    expect(small.answer).toBe("stored 3");
    expect(flood.some(({ answer }) => answer === undefined)).toBe(true);
    stalled.resolve();
    await Promise.all(flood.map(({ work }) => work));
  });
});

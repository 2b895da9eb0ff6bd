// Who inflates next on the pool: works of so many bytes, ten a step, on a clock and a pool that the
// test moves.

import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  InflateQueue,
  type InflateQueueLimits,
  type QueuedWork,
} from "../../../src/gateway/body/inflate-queue.ts";

const stepBytes = 10;

type Given = Partial<Omit<QueuedWork, "step" | "late" | "deadlineMs">> & { readonly inMs?: number };

/**
 * Notes the names of works as they get a step, with `!` where one is done by it, and with `?` those
 * that are late.
 */
function queueOf(limits: Partial<InflateQueueLimits> = {}) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const queue = new InflateQueue(
    { stepsMax: 1, unknownStepsMax: 1, begunMax: 2, memoryBytesMax: 100, ...limits },
    () => performance.now(),
  );
  const noted: string[] = [];
  const onPool: (() => void)[] = [];

  function add(name: string, { inMs = 1_000, ...given }: Given = {}) {
    const work = {
      owner: "a",
      isKnown: true,
      bytesLeft: stepBytes,
      memoryBytes: 1,
      deadlineMs: performance.now() + inMs,
      ...given,
      step(yielded: () => void) {
        work.bytesLeft -= stepBytes;
        noted.push(work.bytesLeft > 0 ? name : `${name}!`);
        onPool.push(() => (work.bytesLeft > 0 ? yielded() : queue.leave(work)));
      },
      late: () => void noted.push(`${name}?`),
    };
    queue.add(work);
    return work;
  }

  return {
    queue,
    add,
    said: () => noted.splice(0).join(" "),
    /** The pool is done with what it began first, and begins what is next. */
    async endStep() {
      onPool.shift()!();
      await Promise.resolve();
    },
    async drain() {
      while (onPool.length > 0) {
        onPool.shift()!();
        await Promise.resolve();
      }
      return noted.splice(0).join(" ");
    },
  };
}

describe("inflating goes round", () => {
  test("projects take turns, a step each, however much one of them sends", async () => {
    const { add, drain } = queueOf();
    for (const name of ["a1", "a2", "a3"]) add(name, { bytesLeft: 30 });
    add("b", { owner: "b", bytesLeft: 30 });
    add("c", { owner: "c" });
    expect(await drain()).toBe("a1 a1 b c! a1! b a2 b! a2 a2! a3 a3 a3!");
  });

  test("of one project the shortest goes first, and one that comes later overtakes a long one between two steps", async () => {
    const { add, endStep, said, drain } = queueOf();
    add("long", { bytesLeft: 1_000 });
    add("longer", { bytesLeft: 2_000 });
    await endStep();
    add("short", { bytesLeft: 20 });
    await endStep();
    await endStep();
    await endStep();
    expect(said()).toBe("long long short short! long");
    expect((await drain()).startsWith("long long")).toBe(true);
  });

  test("who is not known has one step at a time, and the other is there for who is", async () => {
    const { add, endStep, said } = queueOf({ stepsMax: 2 });
    for (const name of ["u1", "u2", "u3"]) add(name, { isKnown: false, bytesLeft: 100 });
    expect(said()).toBe("u1");
    add("known");
    expect(said()).toBe("known!");
    await endStep();
    expect(said()).toBe("u1");
  });

  test("who is not known takes turns by address, and never for a project of the same name", async () => {
    const { add, drain } = queueOf();
    for (const name of ["x1", "x2"]) add(name, { owner: "x", isKnown: false, bytesLeft: 20 });
    add("y", { owner: "y", isKnown: false, bytesLeft: 20 });
    add("project", { owner: "x", bytesLeft: 20 });
    expect(await drain()).toBe("x1 x1! y project x2 y! project! x2!");
  });

  test("one that turns out to be a project's goes on as that", async () => {
    const { add, endStep, said } = queueOf({ stepsMax: 2 });
    add("u", { isKnown: false, bytesLeft: 1_000 });
    const found = add("found", { owner: "y", isKnown: false, bytesLeft: 1_000 });
    expect(said()).toBe("u");
    await endStep();
    expect(said()).toBe("found");
    found.owner = "project";
    found.isKnown = true;
    await endStep();
    expect(said().split(" ").sort()).toEqual(["found", "u"]);
  });

  test("so many of one project have begun at a time, so that what is half done is not all there is", async () => {
    const { add, endStep, said } = queueOf();
    add("first", { bytesLeft: 1_000 });
    await endStep();
    for (const [name, bytesLeft] of [
      ["second", 500],
      ["third", 100],
      ["fourth", 20],
    ] as const) {
      add(name, { bytesLeft });
      await endStep();
      await endStep();
    }
    expect(new Set(said().split(" "))).toEqual(new Set(["first", "second"]));
  });

  test("what holds much memory waits for room, and passes those by that need little", async () => {
    const { add, drain } = queueOf();
    add("large", { owner: "a", memoryBytes: 80, bytesLeft: 30 });
    add("also large", { owner: "b", memoryBytes: 80, bytesLeft: 20 });
    add("small", { owner: "c", memoryBytes: 10, bytesLeft: 20 });
    expect(await drain()).toBe("large small large small! large! also large also large!");
  });

  test("who is not known holds half of the memory", async () => {
    const { add, drain } = queueOf({ begunMax: 9 });
    add("x", { owner: "x", isKnown: false, memoryBytes: 40, bytesLeft: 20 });
    add("y", { owner: "y", isKnown: false, memoryBytes: 40, bytesLeft: 20 });
    add("known", { owner: "z", memoryBytes: 40, bytesLeft: 20 });
    expect(await drain()).toBe("x known x! y known! y!");
  });

  test("what needs more memory than there is may begin alone", async () => {
    const { add, drain } = queueOf();
    add("huge", { memoryBytes: 1_000 });
    add("unknown", { owner: "x", isKnown: false, memoryBytes: 1_000 });
    expect(await drain()).toBe("huge! unknown!");
  });

  test("who waits hears of its deadline at it, begun or not, and nobody else does", async () => {
    const { add, endStep, said } = queueOf();
    add("a", { inMs: 100, bytesLeft: 1_000 });
    add("b", { owner: "b", inMs: 200, bytesLeft: 1_000 });
    await endStep();
    add("c", { owner: "c", inMs: 400 });
    expect(said()).toBe("a b");
    vi.advanceTimersByTime(99);
    expect(said()).toBe("");
    vi.advanceTimersByTime(1);
    expect(said()).toBe("a?");
    vi.advanceTimersByTime(250);
    expect(said()).toBe("");
    // It was at work at its deadline.
    await endStep();
    expect(said()).toBe("b? c!");
  });

  test("who is added later with an earlier deadline hears of it at that", async () => {
    const { queue, add, said } = queueOf({ begunMax: 9 });
    add("running", { inMs: 1_000, bytesLeft: 1_000 });
    add("late", { inMs: 400, bytesLeft: 100 });
    const gone = add("gone", { inMs: 50, bytesLeft: 100 });
    add("early", { inMs: 100, bytesLeft: 100 });
    add("as early", { inMs: 100, bytesLeft: 100 });
    queue.leave(gone);
    expect(said()).toBe("running");
    vi.advanceTimersByTime(100);
    expect(said()).toBe("early? as early?");
    vi.advanceTimersByTime(299);
    expect(said()).toBe("");
    vi.advanceTimersByTime(1);
    expect(said()).toBe("late?");
  });

  test("what comes to its turn after its deadline, before the timer, is late too", () => {
    const { add, said } = queueOf();
    add("late", { inMs: 0 });
    add("next");
    expect(said()).toBe("late? next!");
  });

  test("who leaves is passed over, in any state and any number of times", async () => {
    const { queue, add, said, drain } = queueOf();
    const [first, second, third] = [
      add("1", { bytesLeft: 50 }),
      add("2", { bytesLeft: 50 }),
      add("3", { bytesLeft: 50 }),
    ];
    queue.leave(second);
    queue.leave(second);
    queue.leave(first);
    queue.leave(first);
    // Whoever takes one out is not to find that others have begun meanwhile.
    expect(said()).toBe("1");
    await Promise.resolve();
    expect(said()).toBe("3");
    queue.leave(third);
    add("4");
    expect(said()).toBe("4!");
    expect(await drain()).toBe("");
  });
});

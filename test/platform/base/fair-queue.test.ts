import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FairQueue, type QueuedWork } from "../../../src/platform/base/fair-queue.ts";

const stepBytes = 10;

interface Work extends QueuedWork {
  group: string;
  bytesLeft: number;
}

interface Limits {
  readonly slots?: number;
  readonly groupBegunMax?: number;
  readonly mayRun?: (work: Work) => boolean;
  readonly rank?: (work: Work) => number;
}

/**
 * Records the names of works when they get a slot. `!` marks the last step of a work, and `?` marks
 * a late work.
 */
function queueOf({ slots = 1, mayRun = () => true, ...limits }: Limits = {}) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const queue = new FairQueue<Work>({
    rank: ({ bytesLeft }) => bytesLeft,
    slots,
    mayRun,
    ...limits,
    monotonicMs: () => performance.now(),
  });
  const noted: string[] = [];
  const atWork: (() => void)[] = [];

  function add(name: string, { group = "a", bytesLeft = stepBytes, inMs = 1_000 } = {}): Work {
    const work: Work = {
      group,
      bytesLeft,
      deadlineMs: performance.now() + inMs,
      run() {
        work.bytesLeft -= stepBytes;
        noted.push(work.bytesLeft > 0 ? name : `${name}!`);
        atWork.push(() => (work.bytesLeft > 0 ? queue.again(work) : queue.leave(work)));
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
    async endStep() {
      atWork.shift()!();
      await Promise.resolve();
    },
    async drain() {
      while (atWork.length > 0) {
        atWork.shift()!();
        await Promise.resolve();
      }
      return noted.splice(0).join(" ");
    },
  };
}

describe("the fair queue", () => {
  test("gives each group its share", async () => {
    const { add, drain } = queueOf();
    for (const name of ["a1", "a2", "a3"]) add(name, { bytesLeft: 30 });
    add("b", { group: "b", bytesLeft: 30 });
    add("c", { group: "c" });
    const turns = (await drain()).split(" ");
    // Until the other groups are done, at most every third turn is of the group with the most work.
    expect(turns.filter((name) => name.startsWith("b"))).toEqual(["b", "b", "b!"]);
    expect(turns.indexOf("c!")).toBeLessThan(4);
    expect(turns.indexOf("b!")).toBeLessThan(8);
    expect(turns.slice(-6)).toEqual(expect.arrayContaining(["a2!", "a3!"]));
  });

  test("runs the work with the lowest rank first", async () => {
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

  test("keeps the position of a group whose work pauses", async () => {
    const { queue, add, endStep, said } = queueOf();
    const rests = add("a", { group: "a", bytesLeft: 20 });
    queue.rest(rests);
    await Promise.resolve();
    add("b", { group: "b" });
    add("c", { group: "c" });
    expect(said()).toBe("a b!");
    queue.again(rests);
    queue.leave([...queue.running][0]!);
    await endStep();
    expect(said()).toBe("a!");
  });

  test("limits the slots of a group", () => {
    const { add, said } = queueOf({ slots: 3, groupBegunMax: 2 });
    for (const name of ["a1", "a2", "a3"]) add(name);
    expect(said()).toBe("a1! a2!");
    add("b", { group: "b" });
    expect(said()).toBe("b!");
  });

  test("runs skipped work as soon as it is allowed", async () => {
    let isBarred = true;
    const { add, endStep, said } = queueOf({ mayRun: ({ group }) => group !== "x" || !isBarred });
    add("x", { group: "x" });
    expect(said()).toBe("");
    add("a");
    expect(said()).toBe("a!");
    isBarred = false;
    await endStep();
    expect(said()).toBe("x!");
  });

  test("frees the slot of work that is later assigned to a full group", async () => {
    const { queue, add, said } = queueOf({ slots: 3, groupBegunMax: 2 });
    for (const name of ["a1", "a2"]) add(name);
    const found = add("found", { group: "unknown" });
    add("b", { group: "b" });
    expect(said()).toBe("a1! a2! found!");
    found.group = "a";
    expect(queue.regroup(found)).toBe(false);
    await Promise.resolve();
    expect(said()).toBe("b!");
    expect(queue.running.size).toBe(3);
  });

  test("counts work that changes its group in the new group", async () => {
    const { queue, add, said } = queueOf({ slots: 3, groupBegunMax: 2 });
    const found = add("found", { group: "unknown" });
    add("a1");
    found.group = "a";
    expect(queue.regroup(found)).toBe(true);
    add("a2");
    add("u", { group: "unknown" });
    expect(said()).toBe("found! a1! u!");
  });
});

describe("the deadline of work in the fair queue", () => {
  test("ends only the wait of the late work", async () => {
    const { add, endStep, said } = queueOf();
    add("a", { inMs: 100, bytesLeft: 1_000 });
    add("b", { group: "b", inMs: 200, bytesLeft: 1_000 });
    await endStep();
    add("c", { group: "c", inMs: 400 });
    expect(said()).toBe("a b");
    vi.advanceTimersByTime(99);
    expect(said()).toBe("");
    vi.advanceTimersByTime(41);
    expect(said()).toBe("a?");
    vi.advanceTimersByTime(200);
    expect(said()).toBe("");
    await endStep();
    expect(said()).toBe("b? c!");
  });

  test("applies to work that becomes first after its deadline", () => {
    const { add, said } = queueOf();
    add("late", { inMs: 0 });
    add("next");
    expect(said()).toBe("late? next!");
  });
});

test("paused work in the fair queue frees its slot", async () => {
  const begun = new Set<Work>();
  const { queue, add, said } = queueOf({
    slots: 2,
    groupBegunMax: 2,
    rank: (work) => (begun.has(work) ? -1 : 0),
  });
  const works = ["a1", "a2", "a3"].map((name) => add(name, { bytesLeft: 50 }));
  for (const work of works.slice(0, 2)) {
    begun.add(work);
    queue.rest(work);
  }
  await Promise.resolve();
  expect(said()).toBe("a1 a2");
  add("b", { group: "b", bytesLeft: 50 });
  add("c", { group: "c", bytesLeft: 50 });
  queue.again(works[1]!);
  expect(said()).toBe("b c");
  queue.leave(works[0]!);
  queue.leave([...queue.running][0]!);
  await Promise.resolve();
  expect(said()).toBe("a2");
  queue.leave(works[1]!);
  await Promise.resolve();
  expect(said()).toBe("a3");
});

test("work in the fair queue that throws frees its slot", async () => {
  const { queue, add, said } = queueOf();
  const bug = {
    group: "a",
    bytesLeft: stepBytes,
    deadlineMs: 1_000,
    late: () => {},
    run: () => {
      throw new Error("a bug");
    },
  };
  expect(() => queue.add(bug)).toThrow("a bug");
  expect(queue.running.size).toBe(0);
  add("next");
  expect(said()).toBe("next!");
});

test.each(["of one group", "of a group each"])(
  "the fair queue checks 900 items of work %s only a few times",
  async (which) => {
    let asked = 0;
    const { add, drain } = queueOf({
      slots: 6,
      groupBegunMax: 2,
      mayRun: () => ++asked > 0,
    });
    for (let work = 0; work < 900; work++)
      add(String(work), { group: which === "of one group" ? "a" : String(work) });
    expect((await drain()).split(" ")).toHaveLength(900);
    expect(asked).toBeLessThan(2_000);
  },
);

test("work that leaves the fair queue is skipped", async () => {
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
  // Other work must not start before the caller continues.
  expect(said()).toBe("1");
  await Promise.resolve();
  expect(said()).toBe("3");
  queue.leave(third);
  await Promise.resolve();
  add("4");
  expect(said()).toBe("4!");
  expect(await drain()).toBe("");
});

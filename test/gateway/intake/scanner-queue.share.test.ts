// Who gets a scanner when not all can: so many in all, of a project, of history, and of bodies
// whose index takes much memory. And who loses it: a body that waits for its stream, to one for
// another stream.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Arrival } from "../../../src/gateway/intake/arrivals.ts";
import { ScannerQueue } from "../../../src/gateway/intake/scanner-queue.ts";
import type { BackgroundScanner } from "../../../src/records/table.ts";

const huge = 33_554_432;

interface Body {
  project: string;
  lane?: Arrival["lane"];
  bytes?: number;
}

/** A queue, and who works at the moment. */
function queueOf() {
  const queue = new ScannerQueue({
    createScanner: () => ({ finish: () => {} }) as BackgroundScanner,
    monotonicMs: () => performance.now(),
    publisher: { streamOf: (lane, project) => `${lane} ${project.slice(0, 1)}` },
  });
  const working = new Map<string, () => void>();
  const arrivals = new Map<string, Arrival>();
  const arrive = (name: string, { project, lane = "live", bytes = 1_000 }: Body): void => {
    const arrival: Arrival = { projectId: project, lane, bytes, deadlineMs: Infinity };
    arrivals.set(name, arrival);
    void queue.take(arrival).then(() => {
      working.set(name, () => {
        working.delete(name);
        queue.give(arrival);
      });
    });
  };
  const names = async (): Promise<string> => {
    await Promise.resolve();
    return [...working.keys()].join(" ");
  };
  /** The body waits for its stream; `kept` tells afterwards whether it still has its scanner. */
  const idle = (name: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const kept = queue.keepWhile(promise, arrivals.get(name)!);
    return { goOn: resolve, kept };
  };
  const takeAgain = (name: string) =>
    void queue.take(arrivals.get(name)!).then(() => again.push(name));
  const again: string[] = [];
  return { arrive, names, idle, takeAgain, again, end: (name: string) => working.get(name)!() };
}

describe("scanners are shared out", () => {
  test("six at a time, two of a project", async () => {
    const { arrive, names, end } = queueOf();
    for (const project of ["a", "b", "c", "d"]) {
      for (const number of [1, 2, 3]) arrive(`${project}${number}`, { project });
    }
    expect(await names()).toBe("a1 a2 b1 b2 c1 c2");
    end("a1");
    // Of those that have none the project that waits longest, before a third of one that has.
    expect(await names()).toBe("a2 b1 b2 c1 c2 a3");
    end("b1");
    expect(await names()).toBe("a2 b2 c1 c2 a3 b3");
  });

  test("of history one of a project, and three of all", async () => {
    const { arrive, names, end } = queueOf();
    for (const project of ["a", "b", "c", "d"]) {
      for (const number of [1, 2]) arrive(`${project}${number}`, { project, lane: "historical" });
    }
    expect(await names()).toBe("a1 b1 c1");
    arrive("live", { project: "a" });
    expect(await names()).toBe("a1 b1 c1 live");
    end("b1");
    expect(await names()).toBe("a1 c1 live b2");
    end("b2");
    expect(await names()).toBe("a1 c1 live d1");
  });

  test("of bodies with a large index one of a project, and two of all", async () => {
    const { arrive, names, end } = queueOf();
    for (const project of ["a", "b", "c"]) {
      for (const number of [1, 2]) arrive(`${project}${number}`, { project, bytes: huge });
    }
    expect(await names()).toBe("a1 b1");
    arrive("small", { project: "a", bytes: huge - 1 });
    expect(await names()).toBe("a1 b1 small");
    end("a1");
    expect(await names()).toBe("b1 small c1");
  });
});

describe("a body that waits for its stream", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Six of three projects, which have one stream, and all of them wait for it. */
  function sixOfOneStream() {
    const queue = queueOf();
    const names = ["m1", "m2", "m3"].flatMap((project) => {
      for (const body of ["a", "b"]) queue.arrive(project + body, { project });
      return [`${project}a`, `${project}b`];
    });
    return { ...queue, bodies: names.map((name) => ({ name, ...queue.idle(name) })) };
  }

  test("gives its scanner to one for another stream, and has one again before those that come later", async () => {
    const { arrive, names, bodies, takeAgain, again, end } = sixOfOneStream();
    arrive("other1", { project: "o1" });
    await vi.advanceTimersByTimeAsync(200);
    expect(await names()).not.toContain("other1");
    await vi.advanceTimersByTimeAsync(200);
    expect(await names()).toContain("other1");
    for (const { goOn } of bodies) goOn();
    const kept = await Promise.all(bodies.map((body) => body.kept));
    expect(kept.filter((isKept) => !isKept)).toHaveLength(1);

    const { name } = bodies[kept.indexOf(false)]!;
    const project = name.slice(0, 2);
    arrive("later", { project });
    takeAgain(name);
    for (const other of bodies)
      if (other.name.startsWith(project) && other.name !== name) end(other.name);
    expect([await names(), again]).toEqual([expect.not.stringContaining("later"), [name]]);
  });

  test("keeps its scanner where only bodies for the same stream wait, however many are begun", async () => {
    const { arrive, names, bodies } = sixOfOneStream();
    for (const project of ["m4", "m5"]) arrive(project, { project });
    await vi.advanceTimersByTimeAsync(5_000);
    for (const { goOn } of bodies) goOn();
    expect(await Promise.all(bodies.map(({ kept }) => kept))).toEqual(bodies.map(() => true));
    expect(await names()).not.toContain("m4");
  });

  test("leaves no place to a seventh for its stream, not even without a scanner", async () => {
    const { arrive, names, end } = sixOfOneStream();
    for (const project of ["o1", "o2", "o3"]) arrive(project, { project });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await names()).toContain("o1 o2 o3");
    for (const project of ["o1", "o2", "o3"]) end(project);
    arrive("seventh", { project: "m9" });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await names()).not.toContain("seventh");
  });
});

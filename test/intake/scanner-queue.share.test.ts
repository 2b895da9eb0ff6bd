// Who gets a scanner when not all can: so many in all, of a project, of history, and of bodies
// whose index takes much memory.

import { describe, expect, test } from "vitest";
import type { Arrival } from "../../src/intake/arrivals.ts";
import { ScannerQueue } from "../../src/intake/scanner-queue.ts";
import type { BackgroundScanner } from "../../src/scan/table.ts";

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
    monotonicMs: () => 0,
  });
  const working = new Map<string, () => void>();
  const arrive = (name: string, { project, lane = "live", bytes = 1_000 }: Body): void => {
    const arrival: Arrival = { projectId: project, lane, bytes, deadlineMs: 1_000 };
    void queue.take(arrival).then((scanner) => {
      working.set(name, () => {
        working.delete(name);
        queue.give(arrival, scanner!);
      });
    });
  };
  const names = async (): Promise<string> => {
    await Promise.resolve();
    return [...working.keys()].join(" ");
  };
  return { arrive, names, end: (name: string) => working.get(name)!() };
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

// Who gets a scanner when not all can: so many in all, of a project, of slow bodies, and for one
// stream, where those count that wait for it without a scanner.

import { describe, expect, test } from "vitest";
import type { Arrival } from "../../../src/gateway/intake/arrivals.ts";
import { Scanners } from "../../../src/gateway/intake/scanners.ts";
import type { BackgroundScanner } from "../../../src/records/table.ts";

const huge = 33_554_432;

interface Body {
  project: string;
  lane?: Arrival["lane"];
  bytes?: number;
}

/** A queue, and who works at the moment. */
function queueOf() {
  const queue = new Scanners({
    createScanner: () => ({ finish() {}, release() {} }) as BackgroundScanner,
    monotonicMs: () => performance.now(),
    publisher: { streamOf: (lane, project) => `${lane} ${project.slice(0, 1)}` },
  });
  const working = new Map<string, Arrival>();
  const arrivals = new Map<string, Arrival>();
  const take = (name: string): void => {
    const arrival = arrivals.get(name)!;
    void queue.take(arrival).then(() => working.set(name, arrival));
  };
  const arrive = (name: string, { project, lane = "live", bytes = 1_000 }: Body): void => {
    arrivals.set(name, { projectId: project, lane, bytes, deadlineMs: Infinity });
    take(name);
  };
  const names = async (): Promise<string> => {
    await Promise.resolve();
    await Promise.resolve();
    return [...working.keys()].join(" ");
  };
  const rest = (name: string): void => {
    working.delete(name);
    queue.rest(arrivals.get(name)!);
  };
  const end = (name: string): void => {
    working.delete(name);
    queue.give(arrivals.get(name)!);
  };
  return { arrive, take, names, rest, end };
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

  test("of huge bodies one of a project, and they count with those of history", async () => {
    const { arrive, names, end } = queueOf();
    for (const project of ["a", "b"]) {
      for (const number of [1, 2]) arrive(`${project}${number}`, { project, bytes: huge });
    }
    expect(await names()).toBe("a1 b1");
    arrive("small", { project: "a", bytes: huge - 1 });
    arrive("history", { project: "c", lane: "historical" });
    expect(await names()).toBe("a1 b1 small history");
    arrive("d1", { project: "d", bytes: huge });
    expect(await names()).toBe("a1 b1 small history");
    end("history");
    expect(await names()).toBe("a1 b1 small d1");
  });
});

describe("a body that rests while it waits for its stream", () => {
  /** Six of three projects, which have one stream, and all of them wait for it. */
  function sixOfOneStream() {
    const queue = queueOf();
    const bodies = ["m1", "m2", "m3"].flatMap((project) =>
      ["a", "b"].map((body) => {
        queue.arrive(project + body, { project });
        return project + body;
      }),
    );
    return { ...queue, bodies };
  }

  test("leaves its scanner to one for another stream, and has one again before those that come later", async () => {
    const { arrive, take, names, rest, end } = sixOfOneStream();
    arrive("other", { project: "o1" });
    expect(await names()).not.toContain("other");
    rest("m1a");
    expect(await names()).toContain("other");
    arrive("later", { project: "m1" });
    take("m1a");
    end("m2a");
    expect(await names()).toContain("m1a");
    end("other");
    end("m2b");
    expect(await names()).not.toContain("later");
    end("m1a");
    expect(await names()).toContain("later");
  });

  test("leaves no place to a seventh for its stream", async () => {
    const { arrive, names, rest, end, bodies } = sixOfOneStream();
    expect(await names()).toBe(bodies.join(" "));
    for (const name of bodies) rest(name);
    arrive("seventh", { project: "m9" });
    arrive("other", { project: "o1" });
    expect(await names()).toBe("other");
    end("m1a");
    arrive("next", { project: "o1" });
    expect(await names()).toBe("other seventh next");
  });
});

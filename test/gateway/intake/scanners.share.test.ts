import { describe, expect, test } from "vitest";
import type { Arrival } from "../../../src/gateway/intake/arrivals.ts";
import { Scanners } from "../../../src/gateway/intake/scanners.ts";
import type { BackgroundScanner } from "../../../src/records/table.ts";

const huge = 33_554_432;

interface Body {
  project: string;
  lane?: Arrival["lane"];
  bytes?: number;
  afterMs?: number;
}

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
  const arrive = (
    name: string,
    { project, lane = "live", bytes = 1_000, afterMs = 0 }: Body,
  ): void => {
    arrivals.set(name, { projectId: project, lane, bytes, deadlineMs: 1e9 + afterMs });
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

describe("scanners", () => {
  test("are used by at most six bodies, two per project", async () => {
    const { arrive, names, end } = queueOf();
    for (const project of ["a", "b", "c", "d"]) {
      for (const number of [1, 2, 3]) arrive(`${project}${number}`, { project });
    }
    expect(await names()).toBe("a1 a2 b1 b2 c1 c2");
    end("a1");
    expect(await names()).toBe("a2 b1 b2 c1 c2 a3");
    end("b1");
    expect(await names()).toBe("a2 b2 c1 c2 a3 b3");
  });

  test("scan one huge body at a time", async () => {
    const { arrive, names, end } = queueOf();
    for (const project of ["a", "b"]) {
      for (const number of [1, 2]) arrive(`${project}${number}`, { project, bytes: huge });
    }
    expect(await names()).toBe("a1");
    arrive("b3", { project: "b", bytes: huge - 1 });
    expect(await names()).toBe("a1 b3");
    end("a1");
    expect(await names()).toBe("b3 a2");
    end("a2");
    expect(await names()).toBe("b3 b1");
  });

  test("scan short bodies first, but do not starve long bodies", async () => {
    const { arrive, names, end } = queueOf();
    arrive("a1", { project: "a" });
    arrive("a2", { project: "a" });
    arrive("long", { project: "a", bytes: 6_000_000 });
    arrive("short", { project: "a", bytes: 400_000, afterMs: 100 });
    arrive("later", { project: "a", bytes: 400_000, afterMs: 700 });
    expect(await names()).toBe("a1 a2");
    for (const name of ["a1", "a2"]) end(name);
    expect(await names()).toBe("short long");
    end("short");
    expect(await names()).toBe("long later");
  });
});

describe("bodies for a slow stream", () => {
  test.each(["live", "historical"] as const)("get at most three scanners: %s", async (lane) => {
    const { arrive, names, rest, end } = queueOf();
    for (const project of ["m1", "m2", "m3", "m4"]) arrive(project, { project, lane });
    expect(await names()).toBe("m1 m2 m3");
    rest("m1");
    arrive("other", { project: "o", lane });
    expect(await names()).toBe("m2 m3 other");
    end("m2");
    expect(await names()).toBe("m3 other m4");
  });

  test("leave the next free scanner to a project without a scanner", async () => {
    const { arrive, names, rest, end } = queueOf();
    for (let body = 1; body <= 12; body++)
      arrive(`large${body}`, { project: "m1", bytes: 6_000_000 });
    expect(await names()).toBe("large1 large2");
    rest("large1");
    rest("large2");
    arrive("batch", { project: "m2", bytes: 400_000 });
    expect(await names()).toBe("batch");
    end("batch");
    expect(await names()).toBe("");
  });

  test("get a free scanner before later bodies if they yielded theirs", async () => {
    const { arrive, take, names, rest, end } = queueOf();
    for (const name of ["m1", "m2", "m3"]) arrive(name, { project: name });
    expect(await names()).toBe("m1 m2 m3");
    rest("m1");
    for (const name of ["o1", "o2", "o3", "p1", "p2", "p3"]) arrive(name, { project: name });
    expect(await names()).toBe("m2 m3 o1 o2 o3 p1");
    arrive("later", { project: "m1" });
    take("m1");
    end("m2");
    expect(await names()).toBe("m3 o1 o2 o3 p1 m1");
    end("m3");
    expect(await names()).toBe("o1 o2 o3 p1 m1 p2");
  });
});

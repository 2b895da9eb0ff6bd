import { describe, expect, test } from "vitest";
import type { MeteredProject } from "../../../../src/gateway/projects/project.ts";
import {
  Deletions,
  type EntryNews,
  KnownProjects,
} from "../../../../src/gateway/projects/registry/known-projects.ts";

const put = (id: string, revision: number, key = `k${id}`): [string, EntryNews] => [
  id,
  { kind: "project", revision, project: { id, name: id, keys: [key], enabled: true } },
];
const marker = (id: string, revision: number): [string, EntryNews] => [
  id,
  { kind: "deleted", revision },
];

function knownFrom(lastSequence: number, ...entries: [string, EntryNews][]) {
  const known = new KnownProjects({
    onClash() {},
    onDeleted() {},
    metered: (project) => ({ ...project, meter: {} }) as MeteredProject,
  });
  const read = (last: number, ...read: [string, EntryNews][]): void =>
    known.takeWhole({ created: "A", lastSequence: last, entries: new Map(read) });
  read(lastSequence, ...entries);
  return { known, read, idOf: (key: string) => known.keys.get(key)?.id };
}

const both = [put("a", 1), put("b", 2)];

describe("an older reading of the registry", () => {
  test("does not restore a deleted project", () => {
    const { known, read, idOf } = knownFrom(2, ...both);
    known.take(...marker("b", 3));
    read(2, ...both);
    expect(idOf("kb")).toBeUndefined();
    expect(known.fault).toContain("it ends at entry 2");
    known.take(...put("c", 3));
    expect([idOf("ka"), idOf("kb"), idOf("kc")]).toEqual(["a", undefined, "c"]);
    expect(known.fault).toContain("deleted projects (b)");
    read(3, ...both, put("c", 3));
    expect(idOf("kb")).toBeUndefined();
    expect(known.fault).toContain("deleted projects (b)");
    known.take(...marker("b", 4));
    expect(known.fault).toBeUndefined();
    known.take(...put("b", 5));
    expect(idOf("kb")).toBe("b");
    expect(known.fault).toBeUndefined();
  });

  test("does not restore a project that was deleted before the first read", () => {
    const { known, read, idOf } = knownFrom(3, put("a", 1), marker("b", 3));
    read(2, ...both);
    known.take(...put("c", 3));
    expect(idOf("kb")).toBeUndefined();
    expect(known.fault).toContain("deleted projects (b)");
  });

  test("does not hide a later change of a project", () => {
    const { known, read, idOf } = knownFrom(2, ...both);
    known.take(...marker("b", 3));
    read(2, ...both);
    known.take(...put("c", 3));
    known.take(...put("b", 4, "k-rotated"));
    expect([idOf("kb"), idOf("k-rotated")]).toEqual([undefined, "b"]);
    expect(known.fault).toBeUndefined();
    read(3, put("a", 1), marker("b", 3));
    expect(idOf("k-rotated")).toBe("b");
  });

  test("delays a new project until the bucket has caught up", () => {
    const { known, read, idOf } = knownFrom(4, put("a", 4));
    read(3, put("a", 1), put("new", 3));
    expect(idOf("knew")).toBeUndefined();
    expect(known.fault).toContain("it ends at entry 3");
    known.take(...put("a", 4));
    expect(idOf("knew")).toBe("new");
    expect(known.fault).toBeUndefined();
  });

  test("restores the projects of a recreated bucket", () => {
    const { known, idOf } = knownFrom(2, ...both);
    known.take(...marker("b", 3));
    known.takeWhole({ created: "B", lastSequence: 2, entries: new Map(both) });
    expect(idOf("kb")).toBe("b");
    expect(known.fault).toBeUndefined();
  });

  test("is compared with the latest 10,000 deletions", () => {
    const deletions = new Deletions();
    for (let revision = 2; revision <= 10_002; revision++)
      deletions.note(`p${revision}`, { revision, created: "A" });
    const isUndone = (id: string): boolean =>
      deletions.isUndoneBy(id, { revision: 1, created: "A" });
    expect([isUndone("p2"), isUndone("p3"), isUndone("p10002")]).toEqual([false, true, true]);
  });
});

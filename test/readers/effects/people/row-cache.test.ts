import fc from "fast-check";
import { expect, test } from "vitest";
import { type CachedRow, RowCache } from "../../../../src/readers/effects/people/row-cache.ts";

const project = "p";

function row(id: string, bytes = 60): CachedRow {
  return { projectId: project, id, bytes, isChanged: false };
}

function write(cache: RowCache<CachedRow>): string[] {
  const writing = cache.writeChanged(({ id }) => id);
  for (;;) {
    const { value, done } = writing.next();
    if (done === true) return value;
  }
}

function fill(cache: RowCache<CachedRow>, name: string): void {
  for (const id of [`${name}-1`, `${name}-2`]) cache.put(row(id));
  cache.trim();
}

test("the row cache evicts only rows that were not used recently", () => {
  const cache = new RowCache<CachedRow>(200);
  const [used, left] = [row("used"), row("left")];
  cache.put(used);
  cache.put(left);
  const { generation } = cache;
  cache.trim();
  expect(cache.generation).not.toBe(generation);
  expect(cache.get(project, "used")).toBe(used);
  fill(cache, "other");
  expect(cache.get(project, "used")).toBe(used);
  expect(cache.get(project, "left")).toBeUndefined();
});

test("the row cache evicts nothing while the younger generation is small", () => {
  const cache = new RowCache<CachedRow>(200);
  const one = row("one", 99);
  cache.put(one);
  const { generation } = cache;
  cache.trim();
  cache.trim();
  expect(cache.generation).toBe(generation);
  expect(cache.get(project, "one")).toBe(one);
  cache.grew(one, 1);
  cache.trim();
  expect(cache.generation).not.toBe(generation);
});

test("the row cache holds a changed row until its commit is stored", () => {
  const cache = new RowCache<CachedRow>(200);
  const one = row("one");
  cache.put(one);
  cache.changed(one);
  cache.changed(one);
  expect([cache.changedRows, cache.changedBytes]).toEqual([1, 60]);
  for (const name of ["a", "b", "c"]) fill(cache, name);
  expect(write(cache)).toEqual(["one"]);
  expect([cache.changedRows, cache.changedBytes, one.isChanged]).toEqual([0, 0, false]);
  write(cache);
  for (const name of ["d", "e", "f"]) fill(cache, name);
  expect(cache.get(project, "one")).toBe(one);
  cache.committed();
  for (const name of ["g", "h"]) fill(cache, name);
  expect(cache.get(project, "one")).toBeUndefined();
});

test("the row cache holds a row that changes again during its commit", () => {
  const cache = new RowCache<CachedRow>(200);
  const one = row("one");
  cache.put(one);
  cache.changed(one);
  write(cache);
  cache.changed(one);
  cache.committed();
  for (const name of ["a", "b", "c"]) fill(cache, name);
  expect(cache.get(project, "one")).toBe(one);
  expect(write(cache)).toEqual(["one"]);
});

test("the row cache holds all rows that are not stored", () => {
  const ids = Array.from({ length: 8 }, (_, at) => `id-${at}`);
  const step = fc.record({
    what: fc.constantFrom("use", "use", "change", "change", "trim", "write", "commit"),
    id: fc.constantFrom(...ids),
    bytes: fc.integer({ min: 1, max: 60 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const cache = new RowCache<CachedRow>(200);
      const changed = new Map<string, CachedRow>();
      const inFlight: Map<string, CachedRow>[] = [];
      for (const { what, id, bytes } of steps) {
        if (what === "trim") cache.trim();
        else if (what === "commit") {
          cache.committed();
          inFlight.shift();
        } else if (what === "write") {
          expect(write(cache).sort()).toEqual([...changed.keys()].sort());
          inFlight.push(new Map(changed));
          changed.clear();
        } else {
          const found = cache.get(project, id) ?? row(id, bytes);
          if (cache.get(project, id) === undefined) cache.put(found);
          if (what === "use") continue;
          cache.changed(found);
          changed.set(id, found);
        }
      }
      for (const [id, one] of [...inFlight, changed].flatMap((rows) => [...rows]))
        expect(cache.get(project, id)).toBe(one);
      const found = ids.flatMap((id) => cache.get(project, id) ?? []);
      expect(cache.bytes).toBe(found.reduce((sum, { bytes }) => sum + bytes, 0));
    }),
    { numRuns: 500 },
  );
});

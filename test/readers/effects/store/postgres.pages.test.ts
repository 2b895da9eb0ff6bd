// Where a page ends, which the query for its rows cannot tell by itself.

import { expect, test } from "vitest";
import type { PageOf } from "../../../../src/readers/effects/store/port.ts";
import { cutPage } from "../../../../src/readers/effects/store/postgres/pages.ts";

/** A page of rows named a, b, c, … that come to so many bytes each. */
async function pageOf(
  sizes: readonly number[],
  bounds: { limit: number; bytesMax: number },
): Promise<{ page: PageOf<string>; read: number }> {
  const rows = sizes.map((size, index) => [String.fromCharCode(97 + index), size]);
  let read = 0;
  const page = await cutPage(rows, bounds, async ([name, bytes]) => {
    read++;
    return { result: String(name), bytes: bytes as number, key: `key-${name}` };
  });
  return { page, read };
}

test("all rows, where there are no more than the limit", async () => {
  const { page } = await pageOf([1, 1], { limit: 2, bytesMax: 100 });
  expect(page).toEqual({ results: ["a", "b"], next: undefined });
});

test("one more than the limit is not read, and the last that is shown says how it goes on", async () => {
  const { page, read } = await pageOf([1, 1, 1], { limit: 2, bytesMax: 100 });
  expect(page).toEqual({ results: ["a", "b"], next: "key-b" });
  expect(read).toBe(2);
});

test("a page ends before its bytes come to more than the most", async () => {
  expect((await pageOf([4, 6, 1], { limit: 9, bytesMax: 10 })).page).toEqual({
    results: ["a", "b"],
    next: "key-b",
  });
});

test("a first row that is too much by itself is there all the same", async () => {
  expect((await pageOf([11, 1], { limit: 9, bytesMax: 10 })).page).toEqual({
    results: ["a"],
    next: "key-a",
  });
  expect((await pageOf([11], { limit: 9, bytesMax: 10 })).page.next).toBeUndefined();
});

test("no rows are a page without next", async () => {
  expect((await pageOf([], { limit: 9, bytesMax: 10 })).page).toEqual({
    results: [],
    next: undefined,
  });
});

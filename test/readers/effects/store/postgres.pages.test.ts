import { expect, test } from "vitest";
import type { PageOf } from "../../../../src/readers/effects/store/port.ts";
import { cutPage } from "../../../../src/readers/effects/store/postgres/people.ts";

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

test("a page contains all rows if the limit is not exceeded", async () => {
  const { page } = await pageOf([1, 1], { limit: 2, bytesMax: 100 });
  expect(page).toEqual({ results: ["a", "b"], next: undefined });
});

test("a page omits the row beyond the limit", async () => {
  const { page, read } = await pageOf([1, 1, 1], { limit: 2, bytesMax: 100 });
  expect(page).toEqual({ results: ["a", "b"], next: "key-b" });
  expect(read).toBe(2);
});

test("a page ends before its bytes exceed the maximum", async () => {
  expect((await pageOf([4, 6, 1], { limit: 9, bytesMax: 10 })).page).toEqual({
    results: ["a", "b"],
    next: "key-b",
  });
});

test("a page contains its first row even if that row exceeds the maximum", async () => {
  expect((await pageOf([11, 1], { limit: 9, bytesMax: 10 })).page).toEqual({
    results: ["a"],
    next: "key-a",
  });
  expect((await pageOf([11], { limit: 9, bytesMax: 10 })).page.next).toBeUndefined();
});

test("a page without rows has no next page", async () => {
  expect((await pageOf([], { limit: 9, bytesMax: 10 })).page).toEqual({
    results: [],
    next: undefined,
  });
});

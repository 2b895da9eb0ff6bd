// How the live page writes a count: one item has no plural.

import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";

const page = path.resolve(import.meta.dirname, "../../src/live/page");
const { countText } = (await import(pathToFileURL(path.join(page, "text.js")).href)) as {
  countText: (count: number, one: string) => string;
};

test.each([
  [0, "0 messages"],
  [1, "1 message"],
  [2, "2 messages"],
  [12_345, "12,345 messages"],
])("%d", (count, text) => {
  expect(countText(count, "message")).toBe(text);
});

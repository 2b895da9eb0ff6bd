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
])("the live page shows the count %d with its plural", (count, text) => {
  expect(countText(count, "message")).toBe(text);
});

import path from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { expect, test } from "vitest";

const page = path.resolve(import.meta.dirname, "../../src/live/page");
const { indented, memberText } = (await import(
  pathToFileURL(path.join(page, "json-text.js")).href
)) as {
  indented: (text: string) => string;
  memberText: (text: string, name: string) => string | undefined;
};

test("the live page shows the digits of numbers as they were sent", () => {
  expect(indented('{"n":12345678901234567890,"list":[1.50,1e400,-0.0],"none":{}}')).toBe(
    '{\n  "n": 12345678901234567890,\n  "list": [\n    1.50,\n    1e400,\n    -0.0\n  ],\n  "none": {}\n}',
  );
});

test("the live page formats JSON like JSON.stringify if no number would be rounded", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (value) => {
      const text = JSON.stringify(value);
      expect(indented(text)).toBe(JSON.stringify(JSON.parse(text), undefined, 2));
      for (const [name, member] of Object.entries(value))
        expect(memberText(text, name)).toBe(JSON.stringify(member));
      expect(memberText(text, "no such member anywhere")).toBeUndefined();
    }),
  );
});

test("the live page formats many brackets and quotes in linear time", () => {
  const text = `{"a":${"[".repeat(5_000)}"${"\\\\".repeat(100_000)}"${"]".repeat(5_000)}}`;
  expect(memberText(text, "a")).toHaveLength(text.length - 6);
});

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { errorTable } from "../../../src/platform/base/errors.ts";

const root = path.resolve(import.meta.dirname, "../../..");

const causes: Record<string, string> = {
  "The gateway has no memory left for the body: its budget of bytes in flight is used up":
    "the budget of bytes in flight is used up",
  "The gateway has no memory left to decompress the body: its budget of bytes in flight is used up":
    "the budget of bytes in flight is used up",
  "The gateway has no memory left to replace the body's malformed bytes: its budget of bytes in flight is used up":
    "the budget of bytes in flight is used up",
  "Too many bodies are waiting to be converted": "earlier large bodies to be decompressed, conv",
  "Too many bodies are waiting to be decompressed": "earlier large bodies to be decompressed",
  "Too many large bodies are waiting before this one": "decompressed, converted or scanned",
  "The body arrives in too many small chunks: send larger chunks, or a Content-Length":
    "too many small chunks",
  "There is not enough memory to scan the body": "not enough memory to scan it",
};

test("the error table lists exactly the causes of `overloaded` in the code", () => {
  const files = execFileSync("git", ["ls-files", "src/*.ts"], { cwd: root }).toString().split("\n");
  const details = files
    .filter((file) => file !== "")
    .flatMap((file) => [
      ...readFileSync(path.join(root, file), "utf8").matchAll(
        /code: "overloaded",\s+detail:\s+"([^"]+)"/g,
      ),
    ])
    .map(([, detail]) => detail);
  expect(details.sort()).toEqual(Object.keys(causes).sort());
  for (const cause of Object.values(causes)) expect(errorTable.overloaded.when).toContain(cause);
});

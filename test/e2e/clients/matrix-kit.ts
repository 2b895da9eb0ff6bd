import { readFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";

const root = path.resolve(import.meta.dirname, "../../..");

export function versionOf(name: string): string {
  const text = readFileSync(path.join(root, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

export function expectTold(client: string, version: string): void {
  const rows = readFileSync(path.join(root, "docs/guides/sdks.md"), "utf8").split("\n");
  expect(rows.map((row) => row.split("|").slice(1, 3).join("|").trim())).toContain(
    `${client} | ${version}`,
  );
}

import { execFileSync } from "node:child_process";
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";

const root = path.resolve(import.meta.dirname, "../..");

function launch(args: readonly string[], env: NodeJS.ProcessEnv): string {
  const folder = temporaryFolder();
  const link = path.join(folder, "penstock");
  symlinkSync(path.join(root, "penstock"), link);
  return execFileSync(link, args, { cwd: folder, env, encoding: "utf8" });
}

test("the launcher runs the penstock of its clone from any folder", () => {
  const { PENSTOCK_DATA_DIR: _, ...env } = process.env;
  expect(launch(["--version"], env)).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("the launcher uses its clone's data folder unless PENSTOCK_DATA_DIR is set", () => {
  const bin = temporaryFolder();
  writeFileSync(path.join(bin, "node"), '#!/bin/sh\necho "$PENSTOCK_DATA_DIR|$*"\n');
  chmodSync(path.join(bin, "node"), 0o755);
  const { PENSTOCK_DATA_DIR: _, ...rest } = process.env;
  const env = { ...rest, PATH: `${bin}:${process.env["PATH"]}` };
  const script = path.join(root, "scripts/run.mjs");
  expect(launch(["tail", "--event", "two words"], env)).toBe(
    `${root}/data|${script} tail --event two words\n`,
  );
  expect(launch(["tail"], { ...env, PENSTOCK_DATA_DIR: "elsewhere" })).toBe(
    `elsewhere|${script} tail\n`,
  );
});

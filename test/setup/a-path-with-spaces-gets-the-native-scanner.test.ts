// In a folder whose name make would split, the addon is built all the same, loads, and is not built again; an addon
// that does not compile is told with the compiler's own words.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { linkPackages, setupEnvironment, smallProject, write } from "./setup-kit.ts";

test("built once, loaded, and its faults told", () => {
  const folder = smallProject({ name: "pen stock's #1", npm: "#!/bin/sh\nexit 1\n" });
  linkPackages(folder);
  const elsewhere = mkdtempSync(path.join(tmpdir(), "penstock-test-tmp-"));
  onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }));
  const setUp = () =>
    spawnSync(process.execPath, [path.join(folder, "scripts/setup.mjs")], {
      cwd: folder,
      env: { ...setupEnvironment(folder), TMPDIR: elsewhere },
      encoding: "utf8",
    });

  expect(setUp()).toMatchObject({
    status: 0,
    stdout: "setup: building the native scanner\nsetup: compiling TypeScript\n",
  });
  const addon = path.join(folder, "src/scan/addon/build/Release/tiny.node");
  execFileSync(process.execPath, ["-e", "require(process.argv[1])", addon]);
  expect(setUp()).toMatchObject({ status: 0, stdout: "", stderr: "" });

  write(path.join(folder, "src/scan/addon/tiny.cc"), "#error tiny is wrong\n");
  const failed = setUp();
  expect(failed.status).toBe(0);
  expect(failed.stdout).toMatch(/WARNING: the native scanner was not built/);
  expect(failed.stdout).toMatch(/^setup: +why: .*tiny\.cc:1:2: error: .*tiny is wrong$/m);
  const log = /^setup: +log: (.*)$/m.exec(failed.stdout)?.[1];
  expect(existsSync(log ?? "")).toBe(true);
  expect(readdirSync(elsewhere)).toEqual([]);
});

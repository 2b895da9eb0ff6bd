import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { linkPackages, setupEnvironment, smallProject, write } from "./setup-kit.ts";

test("set-up does nothing if nothing changed", async () => {
  const folder = smallProject({ npm: "#!/bin/sh\necho npm was called\nexit 1\n" });
  linkPackages(folder);
  const env = setupEnvironment(folder);
  const run = (program: string, script: string, ...args: string[]) =>
    spawnSync(program, [path.join(folder, "scripts", script), ...args], {
      cwd: folder,
      env,
      encoding: "utf8",
    });
  const runSetup = () => run(process.execPath, "setup.mjs");
  const launch = (...args: string[]) => run("sh", "launch.sh", ...args);

  const other = spawn(process.execPath, [path.join(folder, "scripts/setup.mjs")], {
    cwd: folder,
    env,
    stdio: "ignore",
  });
  const otherEnded = new Promise((resolve) => other.once("exit", resolve));
  await expect
    .poll(() => existsSync(path.join(folder, ".cache/setup.lock")), { interval: 5 })
    .toBe(true);
  const first = runSetup();
  expect(first.stdout).toContain(`waiting for the set-up that runs as process ${other.pid}`);
  expect(first.status).toBe(0);
  expect(await otherEnded).toBe(0);
  expect(readdirSync(path.join(folder, "src/records/addon/build/Release"))).toContain("tiny.node");

  const beganMs = performance.now();
  const second = runSetup();
  expect(second).toMatchObject({ status: 0, stdout: "", stderr: "" });
  // The second run takes half a second alone, and several times as long alongside other tests.
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  expect(launch("x")).toMatchObject({ status: 3, stdout: "one x\n" });

  write(path.join(folder, "src/main.ts"), 'console.log("two");\n');
  expect(runSetup().stdout).toBe("setup: compiling TypeScript\n");
  expect(launch().stdout).toBe("two\n");

  write(path.join(folder, "src/main.ts"), "const wrong: number = '';\nexport { wrong };\n");
  const broken = runSetup();
  expect(broken.status).toBe(1);
  expect(broken.stdout).toContain("do not compile");
  expect(readFileSync(path.join(folder, "dist/main.js"), "utf8")).toContain("two");
});

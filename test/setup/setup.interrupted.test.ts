import { existsSync, readFileSync, rmSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ended } from "../kit/processes.ts";
import { root, setUp, smallProject, stillRuns, write } from "./setup-kit.ts";

/** A set-up starts several programs, which are slow on a busy machine. */
const soonMs = 80_000;
const patience = { timeout: 3 * soonMs };

// Its helper simulates an install script: a separate process that continues to write.
const npm = `#!/bin/sh
[ "$1" = ci ] || exit 1
if [ -f node_modules/written ]; then
  before=$(wc -c < node_modules/written)
  sleep 0.2
  [ $before = $(wc -c < node_modules/written) ] || { echo "ENOTEMPTY: node_modules is being written"; exit 1; }
fi
mkdir -p node_modules
[ -f deaf ] && trap '' INT TERM
if [ -f slow ]; then
  (while [ -f slow ]; do echo x >> node_modules/written; sleep 0.02; done) &
  echo $$ $! > pids.next && mv pids.next pids
  wait
  exit 1
fi
for entry in ${root}/node_modules/* ${root}/node_modules/.bin ${root}/node_modules/.package-lock.json; do
  ln -sfn $entry node_modules/
done
`;

function slowProject(): string {
  const folder = smallProject({ npm });
  write(path.join(folder, "slow"), "");
  // The stand-in ends when this file is removed, so that a failed test leaves no process.
  onTestFinished(() => rmSync(path.join(folder, "slow"), { force: true }));
  return folder;
}

async function pidsOfNpm(folder: string): Promise<number[]> {
  const file = path.join(folder, "pids");
  await expect.poll(() => existsSync(file), { interval: 5, timeout: soonMs }).toBe(true);
  return readFileSync(file, "utf8").trim().split(" ").map(Number);
}

describe("set-up", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "leaves no process after %s",
    patience,
    async (signal) => {
      const folder = slowProject();
      const first = setUp(folder);
      const pids = await pidsOfNpm(folder);
      expect(pids.every(stillRuns)).toBe(true);
      first.kill(signal);
      expect(await ended(first)).toBe(128 + constants.signals[signal]);
      expect(first.said()).toContain(`stopped: interrupted by ${signal}`);
      expect(pids.filter(stillRuns)).toEqual([]);
      expect(existsSync(path.join(folder, ".cache/setup.lock"))).toBe(false);

      if (signal !== "SIGINT") return;
      rmSync(path.join(folder, "slow"));
      const second = setUp(folder);
      expect(await ended(second)).toBe(0);
      expect(existsSync(path.join(folder, "dist/main.js"))).toBe(true);
    },
  );

  test("leaves no process after SIGINT if npm does not end in time", patience, async () => {
    const folder = slowProject();
    write(path.join(folder, "deaf"), "");
    const run = setUp(folder);
    const pids = await pidsOfNpm(folder);
    const sinceMs = performance.now();
    run.kill("SIGINT");
    expect(await ended(run)).toBe(128 + constants.signals.SIGINT);
    expect(performance.now() - sinceMs).toBeLessThan(8_000);
    expect(run.said()).toContain("stopped: interrupted by SIGINT");
    expect(pids.filter(stillRuns)).toEqual([]);
  });

  test("waits for npm processes that a killed set-up left running", patience, async () => {
    const folder = slowProject();
    const first = setUp(folder);
    const pids = await pidsOfNpm(folder);
    const lock = path.join(folder, ".cache/setup.lock");
    await expect
      .poll(() => readFileSync(lock, "utf8"), { interval: 5, timeout: soonMs })
      .toContain(String(pids[0]));
    first.kill("SIGKILL");
    await ended(first);
    expect(pids.every(stillRuns)).toBe(true);

    const second = setUp(folder);
    await expect
      .poll(second.said, { interval: 5, timeout: soonMs })
      .toContain(`what a killed set-up left running as process ${pids[0]}`);
    rmSync(path.join(folder, "slow"));
    expect(await ended(second)).toBe(0);
    expect(existsSync(path.join(folder, "dist/main.js"))).toBe(true);
  });
});

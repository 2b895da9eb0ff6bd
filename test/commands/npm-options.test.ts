// npm keeps an option that has no `--` before it, so it never reaches the program.

import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";

const root = path.resolve(import.meta.dirname, "../..");

function npmRun(args: readonly string[]) {
  const { stderr, status } = spawnSync("npm", ["run", "--silent", ...args], {
    cwd: root,
    env: { ...process.env, PENSTOCK_DATA_DIR: temporaryFolder() },
    encoding: "utf8",
    timeout: 60_000,
  });
  return { stderr, status };
}

test.each([
  [["penstock", "project", "rotate", "slip", "--keep-old"], "--keep-old"],
  [["penstock", "project", "add", "x", "--nats-url", "nats://127.0.0.1:1"], "--nats-url"],
  [["penstock", "project", "list", "--json"], "--json"],
  [["up", "--port=8001"], "--port"],
  [["up", "--port", "8001"], "--port"],
  [["start", "--port=8001"], "--port"],
  [["load", "--rate=100"], "--rate"],
  [["faults", "--list"], "--list"],
  [["bench", "--rounds", "2"], "--rounds"],
])("npm run %j fails and states where to put --", (args, option) => {
  const { stderr, status } = npmRun(args);
  const script = `npm run ${args[0]}`;
  expect(stderr).toContain(
    `error: npm consumed ${option}: put -- after ${script}, as in: ${script} -- …\n`,
  );
  expect(status).toBe(2);
});

const noNats = { stderr: expect.stringContaining("cannot find NATS"), status: 1 };

test("an option after -- is accepted, even if npm consumed the same option before it", () => {
  expect(npmRun(["penstock", "--json", "--", "project", "list", "--json"])).toEqual(noNats);
});

test("an option that npm consumed is ignored if the command does not have that option", () => {
  expect(npmRun(["penstock", "project", "list", "--keep-old"])).toEqual(noNats);
});

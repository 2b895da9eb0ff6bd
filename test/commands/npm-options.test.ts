// npm consumes an option that has no `--` before it, so the option does not reach the program.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";

const root = path.resolve(import.meta.dirname, "../..");

function npmRun(args: readonly string[], env: Record<string, string> = {}) {
  const { stderr, status } = spawnSync("npm", ["run", "--silent", ...args], {
    cwd: root,
    env: { ...process.env, PENSTOCK_DATA_DIR: temporaryFolder(), ...env },
    encoding: "utf8",
    timeout: 60_000,
  });
  return { stderr, status };
}

test.each([
  [
    ["penstock", "project", "rotate", "slip", "--keep-old"],
    "--keep-old",
    "npm run penstock -- project rotate slip --keep-old",
  ],
  [
    ["penstock", "project", "add", "x", "--nats-url", "nats://127.0.0.1:1"],
    "--nats-url",
    "npm run penstock -- project add x --nats-url <url[,url]>",
  ],
  [["penstock", "project", "list", "--json"], "--json", "npm run penstock -- project list --json"],
  [["up", "--port=8001"], "--port", "npm run up -- --port <port>"],
  [["up", "--port", "8001"], "--port", "npm run up -- --port <port>"],
  [["start", "--port=8001"], "--port", "npm run start -- --port <port>"],
  [["load", "--rate=100"], "--rate", "npm run load -- --rate <events>"],
  [["faults", "--list"], "--list", "npm run faults -- --list"],
  [["bench", "--rounds", "2"], "--rounds", "npm run bench -- --rounds <count>"],
])("npm run %j fails and explains where to put --", (args, option, shown) => {
  const { stderr, status } = npmRun(args);
  expect(stderr).toContain(
    `error: npm consumed ${option}: put -- before the options, as in: ${shown}\n`,
  );
  expect(status).toBe(2);
});

const noNats = { stderr: expect.stringContaining("cannot find NATS"), status: 1 };

test("an option after -- is accepted even if npm also consumed it", () => {
  expect(npmRun(["penstock", "--json", "--", "project", "list", "--json"])).toEqual(noNats);
});

test("a setting in npm's own file is not an option of the command", () => {
  const userconfig = path.join(temporaryFolder(), "npmrc");
  writeFileSync(userconfig, "json = true\n");
  const list = ["penstock", "project", "list"];
  expect(npmRun(list, { npm_config_userconfig: userconfig })).toEqual(noNats);
  expect(npmRun(list, { NPM_CONFIG_JSON: "true" })).toEqual(noNats);
});

test("an option that npm consumed is ignored if the command lacks it", () => {
  expect(npmRun(["penstock", "project", "list", "--keep-old"])).toEqual(noNats);
});

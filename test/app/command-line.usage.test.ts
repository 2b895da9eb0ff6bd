// No NATS server listens at this address.

import { Readable, Writable } from "node:stream";
import { expect, test } from "vitest";
import { commandLine } from "../../src/app/command-line.ts";
import { type CommandContext, CommandError } from "../../src/commands/context.ts";
import { temporaryFolder } from "../kit/processes.ts";

async function faultOf(args: readonly string[]): Promise<CommandError> {
  const discard = new Writable({ write: (_, __, done) => done() });
  const context: CommandContext = {
    env: { PENSTOCK_DATA_DIR: temporaryFolder() },
    host: process,
    mainFile: "",
    channel: { connected: false, on: () => {} },
    stdin: Readable.from([]),
    stdout: discard,
    stderr: discard,
    stop: new AbortController().signal,
  };
  const error: unknown = await commandLine(context)
    .parseAsync(args, { from: "user" })
    .catch((thrown: unknown) => thrown);
  if (error instanceof CommandError) return error;
  throw new Error("run the command: it did not end with a CommandError", { cause: error });
}

test.each([
  [["project", "add", "a b"], "the project's id must match"],
  [["project", "add", "shop", "--key", "a b"], "the key must be"],
  [["project", "add", "shop", "--key", "phx_secret"], "the key begins with phx_"],
  [["project", "add", "shop", "--name", "x".repeat(201)], "the project's name must be"],
  [["project", "rotate", "a b"], "the project's id must match"],
  [["project", "retire", "a b"], "the project's id must match"],
  [["project", "disable", "a b"], "the project's id must match"],
  [["project", "enable", "a b"], "the project's id must match"],
  [["project", "limit", "a b", "--none"], "the project's id must match"],
  [["project", "usage", "a b"], "the project's id must match"],
  [["project", "remove", "a b"], "the project's id must match"],
  [["stream", "purge", "live", "--project", "a b"], "the project's id must match"],
  [["stream", "set", "live"], "give --max-age, --max-bytes or both"],
  [["stream", "set", "live", "--max-age", "2d", "--from-settings"], "or only --from-settings"],
  [["stream", "set", "live", "--max-bytes", "10"], "--max-bytes must be at least 1048576"],
  [["stream", "set", "live", "--max-age", "30m"], "--max-age must be at least 1h"],
  [["stream", "set", "live", "--max-age", "106752d"], "--max-age must be at most 106751d"],
  [["stream", "restore", "/does/not/exist"], "cannot read /does/not/exist: ENOENT"],
  [["tail", "--project", "a b"], "the project's id must match"],
  [["export", "a b"], "the project's id must match"],
  [["erase", "a b", "--distinct-id", "u"], "the project's id must match"],
  [["person", "a b", "u"], "the project's id must match"],
  [["gather", "a b"], "JetStream domain must match"],
  [["doctor", "--monitor", "nats-1"], "--monitor must be"],
  [["up", "--nats-url", "nats://127.0.0.1:1"], "starts its own nats-server"],
  [
    ["effects", "stauts"],
    "unknown command effects stauts: the commands are run, status, rebuild, verify",
  ],
  [["worker"], "cannot be run alone"],
])("wrong arguments are reported with exit code 2: %j", async (args, why) => {
  const { exitCode, message } = await faultOf(args);
  expect([exitCode, message]).toEqual([2, expect.stringContaining(why)]);
});

test("a correct command exits with code 1 if it finds no NATS", async () => {
  const { exitCode, message } = await faultOf(["project", "add", "shop"]);
  expect([exitCode, message]).toEqual([1, expect.stringContaining("cannot find NATS")]);
});

test.each(["--data-dir", "--effects-url", "--sink-port", "--workers", "--nats-url"])(
  "`testing` rejects the setting %s, which has no effect on it",
  async (flag) => {
    const run = faultOf(["testing", flag, "1"]);
    await expect(run).rejects.toMatchObject({
      cause: { message: `error: unknown option '${flag}'` },
    });
  },
);

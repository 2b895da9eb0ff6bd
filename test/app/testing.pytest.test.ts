import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";

const packageFolder = path.resolve(import.meta.dirname, "../../packages/testing");

// A stand-in for pytest, so that the test needs only Python.
const start = `
import sys, types

class Failed(Exception):
    pass

def fail(message):
    raise Failed(message)

sys.dont_write_bytecode = True
sys.modules["pytest"] = types.SimpleNamespace(
    fail=fail, fixture=lambda *function, **_: function[0] if function else lambda function: function
)
sys.path.insert(0, ${JSON.stringify(packageFolder)})
import penstock_pytest

penstock_pytest.START_SECONDS_MAX = float(sys.argv[1])
try:
    next(penstock_pytest.penstock_gateway())
except Failed as failed:
    print(failed)
`;

async function startWith(program: string, secondsMax: number, env: NodeJS.ProcessEnv = {}) {
  const file = path.join(temporaryFolder(), "program.mjs");
  writeFileSync(file, program);
  return await promisify(execFile)("python3", ["-c", start, String(secondsMax)], {
    env: { PATH: process.env["PATH"], PENSTOCK_PROGRAM: `${process.execPath} ${file}`, ...env },
    timeout: 20_000,
  });
}

test("the pytest fixture starts the gateway without settings of other gateways", async () => {
  const program = "console.error(JSON.stringify(process.env)); process.exit(3);";
  const env = {
    PENSTOCK_NATS_URL: "nats://127.0.0.1:1",
    PENSTOCK_NATS_SERVER: "/nats-server",
    PENSTOCK_NATS_SERVER_X: "x",
    NODE_OPTIONS: "--no-warnings",
    OTHER: "kept",
  };
  const { stdout, stderr } = await startWith(program, 20, env);
  expect(stdout).toBe("penstock did not start (exit code 3): see its output\n");
  const received = JSON.parse(stderr) as Record<string, string>;
  expect(received).toMatchObject({ PENSTOCK_NATS_SERVER: "/nats-server", OTHER: "kept" });
  const names = Object.keys(received).filter((name) => /^(PENSTOCK_|NODE_)/.test(name));
  expect(names).toEqual(["PENSTOCK_NATS_SERVER"]);
});

test("the pytest fixture fails if the gateway does not start in time", async () => {
  const { stdout } = await startWith("process.stdin.resume();", 0.5);
  expect(stdout).toBe("penstock did not start within 0.5 s: see its output\n");
});

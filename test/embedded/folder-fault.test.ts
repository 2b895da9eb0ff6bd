// A data folder that is a file, lies below one, or cannot be written: the start ends with what is
// wrong and a way out, and doctor finds it before.

import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { binary, temporaryFolder } from "../../testkit/processes.ts";

const main = path.resolve(import.meta.dirname, "../../src/main.ts");
const way = "name another folder with PENSTOCK_DATA_DIR (--data-dir)";

function run(command: readonly string[]): SpawnSyncReturns<string> {
  const env = { PATH: process.env["PATH"], PENSTOCK_NATS_SERVER: binary.file };
  return spawnSync(command[0]!, command.slice(1), { env, encoding: "utf8", timeout: 30_000 });
}

function penstock(...args: string[]): string[] {
  return [
    process.execPath,
    main,
    ...args,
    "--port",
    "0",
    "--admin-port",
    "0",
    "--stream-bytes-max",
    "8388608",
  ];
}

/** With nothing to be written in the folder, for root neither. */
function readOnly(folder: string, command: readonly string[]): string[] {
  const unshare = ["unshare", ...(process.getuid?.() === 0 ? [] : ["-Ur"]), "--mount"];
  const script = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"';
  return [...unshare, "sh", "-c", script, "sh", folder, ...command];
}

function given(): { file: string; below: string; folder: string; inside: string } {
  const root = temporaryFolder();
  const file = path.join(root, "file");
  writeFileSync(file, "");
  const inside = path.join(root, "inside");
  mkdirSync(inside);
  writeFileSync(path.join(inside, "nats"), "");
  return { file, below: path.join(file, "data"), folder: root, inside };
}

describe("a folder that cannot be used is told", () => {
  test.each([
    ["file", (at: string) => `start on ${at}: it is a file, and a folder is needed`],
    [
      "below",
      (at: string) => `start on ${at}: ${path.dirname(at)} is a file, and a folder is needed`,
    ],
    [
      "inside",
      (at: string) => `start on ${at}: ${path.join(at, "nats")} is a file, and a folder is needed`,
    ],
    ["folder", (at: string) => `start on ${at}: it is on a file system that is mounted read-only`],
  ] as const)("%s", (kind, words) => {
    const at = given()[kind];
    const wrapped = (command: string[]): string[] =>
      kind === "folder" ? readOnly(at, command) : command;
    const up = run(wrapped(penstock("up", "--data-dir", at)));
    expect(up.stderr).toContain(`${words(at)}: ${way}`);
    expect(up.status).toBe(1);

    const doctor = run(wrapped(penstock("doctor", "--data-dir", at, "--json")));
    const { checks } = JSON.parse(doctor.stdout) as {
      checks: { check: string; level: string; fix?: string }[];
    };
    const found = checks.filter(({ check }) => check === "data folder");
    expect(found).toEqual([
      expect.objectContaining({ level: "fail", fix: expect.stringContaining(way) }),
    ]);
    expect(doctor.status).toBe(1);
  });

  test.runIf(process.platform === "linux")(
    "a folder that the system does not make below one that is there",
    () => {
      const up = run(penstock("up", "--data-dir", "/proc/penstock/data"));
      expect(up.stderr).toContain(
        "start on /proc/penstock/data: the folder cannot be written (ENOENT)",
      );
      expect(up.status).toBe(1);
    },
  );
});

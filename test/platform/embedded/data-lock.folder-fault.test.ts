import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { binary, temporaryFolder } from "../../kit/processes.ts";

const main = path.resolve(import.meta.dirname, "../../../src/main.ts");
const otherFolder = "set PENSTOCK_DATA_DIR (--data-dir) to another folder";
const writable = `let this user write to it, or ${otherFolder}`;
/** Outside of its namespaces, root is nobody. */
const uid = process.getuid?.() === 0 ? 65_534 : process.getuid?.();

function run(command: readonly string[]): SpawnSyncReturns<string> {
  const { PATH, NODE_OPTIONS } = process.env;
  const env = { PATH, NODE_OPTIONS, PENSTOCK_NATS_SERVER: binary.file };
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

function readOnly(folder: string, command: readonly string[]): string[] {
  const unshare = ["unshare", ...(process.getuid?.() === 0 ? [] : ["-Ur"]), "--mount"];
  const script = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"';
  return [...unshare, "sh", "-c", script, "sh", folder, ...command];
}

/**
 * Root may write to any folder, except in a user namespace in which the folder's owner is nobody.
 */
function withoutRoot(command: readonly string[]): string[] {
  return process.getuid?.() === 0 ? ["unshare", "--user", ...command] : [...command];
}

function unwritable(): { folder: string; missing: string } {
  const folder = path.join(temporaryFolder(), "unwritable");
  mkdirSync(folder);
  chmodSync(folder, 0o500);
  onTestFinished(() => chmodSync(folder, 0o700));
  return { folder, missing: path.join(folder, "a", "data") };
}

function expectFinding(
  doctor: SpawnSyncReturns<string>,
  { found, fix }: { found: string; fix: string },
): void {
  const { checks } = JSON.parse(doctor.stdout) as {
    checks: { check: string; level: string; found: string; fix?: string }[];
  };
  expect(checks.filter(({ check }) => check === "data folder")).toEqual([
    { check: "data folder", level: "fail", found, fix },
  ]);
  expect(doctor.status).toBe(1);
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

describe("a data folder", () => {
  test.each([
    ["file", (at: string) => `cannot start on ${at}: it is a file, not a folder`],
    ["below", (at: string) => `cannot start on ${at}: ${path.dirname(at)} is a file, not a folder`],
    [
      "inside",
      (at: string) => `cannot start on ${at}: ${path.join(at, "nats")} is a file, not a folder`,
    ],
    [
      "folder",
      (at: string) => `cannot start on ${at}: it is on a file system that is mounted read-only`,
    ],
  ] as const)("that cannot be used is reported by `penstock up` and doctor: %s", (kind, words) => {
    const at = given()[kind];
    const wrapped = (command: string[]): string[] =>
      kind === "folder" ? readOnly(at, command) : command;
    const up = run(wrapped(penstock("up", "--data-dir", at)));
    expect(up.stderr).toContain(`${words(at)}: ${otherFolder}`);
    expect(up.status).toBe(1);

    const doctor = run(wrapped(penstock("doctor", "--data-dir", at, "--json")));
    const found = words(at).replace("cannot start on ", "");
    expectFinding(doctor, { found, fix: otherFolder });
  });

  test.runIf(process.platform === "linux" || process.getuid?.() !== 0).each([
    ["folder", () => `this user may not write to it, which belongs to uid ${uid} (EACCES)`],
    [
      "missing",
      (folder: string) =>
        `this user may not write to ${folder}, which belongs to uid ${uid} (EACCES)`,
    ],
  ] as const)(
    "that this user cannot write is reported by `penstock up` and doctor: %s",
    (kind, why) => {
      const place = unwritable();
      const at = place[kind];
      const up = run(withoutRoot(penstock("up", "--data-dir", at)));
      expect(up.stderr).toContain(`cannot start on ${at}: ${why(place.folder)}: ${writable}`);
      expect(up.status).toBe(1);
      const doctor = run(withoutRoot(penstock("doctor", "--data-dir", at, "--json")));
      expectFinding(doctor, { found: `${at}: ${why(place.folder)}`, fix: writable });
    },
  );

  test.runIf(process.platform === "linux")(
    "that the system cannot create is reported by `penstock up`",
    () => {
      const up = run(penstock("up", "--data-dir", "/proc/penstock/data"));
      expect(up.stderr).toContain(
        "start on /proc/penstock/data: the folder is not writable (ENOENT)",
      );
      expect(up.status).toBe(1);
    },
  );
});

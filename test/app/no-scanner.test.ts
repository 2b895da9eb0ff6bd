import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "penstock-test-no-scanner-"));
  cpSync(path.join(root, "src"), path.join(folder, "src"), {
    recursive: true,
    filter: (file) => path.basename(file) !== "build",
  });
  cpSync(path.join(root, "package.json"), path.join(folder, "package.json"));
  symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"));
});

afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]) {
  return spawnSync(process.execPath, [path.join(folder, "src/main.ts"), ...args], {
    cwd: folder,
    encoding: "utf8",
    timeout: 30_000,
  });
}

test.each([
  [["serve"]],
  [["up"]],
  [["import", "events.jsonl", "--dry-run"]],
  [["effects"]],
  [["sink", "postgres", "postgres://127.0.0.1/events"]],
  [["export", "shop"]],
  [["erase", "shop", "--distinct-id", "user-1"]],
])("penstock %j fails if the native scanner is missing", (args) => {
  const { status, stdout, stderr } = run(...args);
  expect(stderr).toMatch(
    /^penstock: the native scanner \S+\.node does not load: it is not built. Build it with `npm run setup`, or for the npm package with `npm rebuild penstock`\n$/,
  );
  expect(stdout).toBe("");
  expect(status).toBe(1);
});

test("penstock serve fails if the connection addon is missing, before it waits for NATS", () => {
  const build = "src/records/addon/build";
  symlinkSync(path.join(root, build), path.join(folder, build));
  onTestFinished(() => rmSync(path.join(folder, build)));
  const nowhere = "nats://127.0.0.1:1";
  const { status, stderr } = run(
    "serve",
    "--nats-url",
    nowhere,
    "--port",
    "0",
    "--admin-port",
    "0",
  );
  expect(stderr).toMatch(
    /^penstock: the native connection addon \S+\.node does not load: it is not built\. .*\n$/,
  );
  expect(status).toBe(1);
});

test("penstock doctor reports a missing native scanner", () => {
  const { checks } = JSON.parse(run("doctor", "--json").stdout) as { checks: object[] };
  expect(checks).toContainEqual(
    expect.objectContaining({
      check: "addons",
      level: "fail",
      fix: "npm run setup",
      found: "scanner is not built, or not for this Node: no other command starts",
    }),
  );
});

describe("a package of another platform", () => {
  const host = `${process.platform}-${process.arch}`;
  const [other, machine] = host === "linux-x64" ? ["linux-arm64", 183] : ["linux-x64", 62];
  const elf = Buffer.alloc(64);
  elf.write("\x7fELF", "latin1");
  elf.writeUInt16LE(machine, 18);

  test.each([`prebuilt/${other}`, `prebuilt/${host}`, "src/records/addon/build/Release"])(
    "is reported with both platforms if the addon is in %s",
    (below) => {
      const within = path.join(folder, below);
      mkdirSync(within, { recursive: true });
      writeFileSync(path.join(within, "event_scan.node"), elf);
      onTestFinished(() => rmSync(within, { recursive: true }));
      const { status, stderr } = run("up");
      expect(stderr).toBe(
        `penstock: the native scanner does not load: this package is for ${other}, and this host is ${host}: install the package for ${host}, or build the addons with \`npm rebuild penstock\`\n`,
      );
      expect(status).toBe(1);
      const { checks } = JSON.parse(run("doctor", "--json").stdout) as { checks: object[] };
      expect(checks).toContainEqual({
        check: "addons",
        level: "fail",
        fix: `install the package for ${host}`,
        found: `scanner is for ${other}, and this host is ${host}: no other command starts`,
      });
    },
  );
});

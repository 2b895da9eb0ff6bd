import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { linkPackages, setupEnvironment, smallProject } from "./setup-kit.ts";

const failing = "#!/bin/sh\necho npm was called\nexit 1\n";

function setUp(folder: string, { readOnly = false } = {}): SpawnSyncReturns<string> {
  const command = [process.execPath, path.join(folder, "scripts/setup.mjs")];
  const unshare = ["unshare", ...(process.getuid?.() === 0 ? [] : ["-Ur"]), "--mount"];
  // The same folder, mounted onto itself as read-only.
  const script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"';
  const wrapped = readOnly ? [...unshare, "sh", "-c", script, "sh", folder, ...command] : command;
  const options = {
    cwd: folder,
    env: setupEnvironment(folder),
    encoding: "utf8",
    timeout: 120_000,
  } as const;
  return spawnSync(wrapped[0]!, wrapped.slice(1), options);
}

describe("set-up", () => {
  test("reports a read-only checkout with the fix", () => {
    const folder = smallProject({ npm: failing });
    linkPackages(folder);
    const { stdout, stderr, status } = setUp(folder, { readOnly: true });
    expect(stderr).toBe("");
    expect(stdout).toContain(
      "setup: stopped: the checkout cannot be written by this user (EROFS: ",
    );
    expect(stdout).toContain("sudo chown -R");
    expect(stderr).toBe("");
    expect(status).toBe(1);

    expect(setUp(folder).status).toBe(0);
    expect(setUp(folder, { readOnly: true })).toMatchObject({ stdout: "", stderr: "", status: 0 });
  });

  test("reports an unreachable registry within seconds", () => {
    const npm = '#!/bin/sh\necho "$@" > asked\necho "npm error code EAI_AGAIN"\nexit 1\n';
    const folder = smallProject({ npm });
    const { stdout, status } = setUp(folder);
    expect(stdout).toContain(
      "npm error code EAI_AGAIN\nnpm ci failed: the package registry cannot be reached\n",
    );
    expect(stdout).toContain("connect this machine to the network");
    expect(status).toBe(1);
    const asked = readFileSync(path.join(folder, "asked"), "utf8");
    const flag = (name: string): number =>
      Number(new RegExp(`--${name}=(\\d+)`).exec(asked)?.[1] ?? Number.NaN);
    expect(flag("fetch-retries") * flag("fetch-retry-maxtimeout")).toBeLessThanOrEqual(5_000);
  });
});

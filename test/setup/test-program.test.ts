// If Prometheus or kubectl is not available, the tests that need it explain how to get it. If it is
// on PATH or configured, nothing is fetched.

import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";
import { root, write } from "./setup-kit.ts";

const standIn = '#!/bin/sh\necho "version 2.42.0" ; test "$1" = --version\n';

/** A folder with stand-ins for these programs. */
function folderOf(...programs: string[]): string {
  const folder = temporaryFolder();
  for (const program of programs) {
    write(path.join(folder, program), standIn);
    chmodSync(path.join(folder, program), 0o755);
  }
  return folder;
}

/**
 * Runs the script in a separate tree, which has fetched nothing, with only these programs and a
 * shell.
 */
function ask(name: string, env: { PATH?: string; PENSTOCK_TEST_PROMETHEUS?: string }) {
  const tree = temporaryFolder();
  cpSync(path.join(root, "scripts"), path.join(tree, "scripts"), { recursive: true });
  const bin = path.join(tree, "bin");
  mkdirSync(bin);
  symlinkSync(
    execFileSync("sh", ["-c", "command -v sh"], { encoding: "utf8" }).trim(),
    path.join(bin, "sh"),
  );
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(tree, "scripts/test-program.mjs"), name],
    {
      cwd: tree,
      env: { ...env, PATH: env.PATH === undefined ? bin : `${env.PATH}:${bin}` },
      encoding: "utf8",
    },
  );
  expect(existsSync(path.join(tree, ".cache", name, "bin"))).toBe(false);
  return { status, stdout, stderr };
}

describe("Prometheus is found or requested", () => {
  test("uses the configured folder before the one on PATH", () => {
    const named = folderOf("prometheus", "promtool");
    const onPath = folderOf("prometheus", "promtool");
    expect(ask("prometheus", { PATH: onPath })).toEqual({
      status: 0,
      stdout: `{"path":"${onPath}"}\n`,
      stderr: "",
    });
    expect(ask("prometheus", { PATH: onPath, PENSTOCK_TEST_PROMETHEUS: named })).toEqual({
      status: 0,
      stdout: `{"path":"${named}"}\n`,
      stderr: "",
    });
  });

  test("rejects a configured folder that is unusable, whatever is on PATH", () => {
    const onPath = folderOf("prometheus", "promtool");
    const half = folderOf("prometheus");
    const { status, stderr } = ask("prometheus", { PATH: onPath, PENSTOCK_TEST_PROMETHEUS: half });
    expect(status).toBe(1);
    expect(stderr).toBe(`PENSTOCK_TEST_PROMETHEUS: there is no promtool in ${half}\n`);
  });

  test("names the ways to get it without apt-get, and with half of it on PATH", () => {
    const { status, stderr } = ask("prometheus", { PATH: folderOf("prometheus") });
    expect(status).toBe(1);
    expect(stderr).toContain("prometheus cannot be fetched on this host");
    expect(stderr).toContain("PENSTOCK_TEST_PROMETHEUS=/path/to/folder");
    expect(stderr).toMatch(/brew install prometheus/);
  });
});

describe("kubectl is found or requested", () => {
  function kubectlOf(version: string): string {
    const folder = temporaryFolder();
    write(path.join(folder, "kubectl"), `#!/bin/sh\necho "Client Version: ${version}"\n`);
    chmodSync(path.join(folder, "kubectl"), 0o755);
    return folder;
  }

  test("uses the one on PATH, if it is new enough", () => {
    const onPath = kubectlOf("v1.27.0");
    expect(ask("kubectl", { PATH: onPath })).toEqual({
      status: 0,
      stdout: `{"path":"${onPath}/kubectl"}\n`,
      stderr: "",
    });
  });

  test("names the ways to get it if it is too old and none can be fetched", () => {
    const { status, stderr } = ask("kubectl", { PATH: kubectlOf("v1.26.9") });
    expect(status).toBe(1);
    expect(stderr).toContain("kubectl 1.27 or newer");
    expect(stderr).toContain("brew install kubectl");
  });
});

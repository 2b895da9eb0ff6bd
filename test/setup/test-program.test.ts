import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";
import { root, write } from "./setup-kit.ts";

const standIn = '#!/bin/sh\necho "version 2.42.0" ; test "$1" = --version\n';

const script = "test/kit/test-programs.mjs";

function folderOf(...programs: string[]): string {
  const folder = temporaryFolder();
  for (const program of programs) {
    write(path.join(folder, program), standIn);
    chmodSync(path.join(folder, program), 0o755);
  }
  return folder;
}

function ask(name: string, env: { PATH?: string; PENSTOCK_TEST_PROMETHEUS?: string }) {
  const tree = temporaryFolder();
  for (const part of ["scripts", script])
    cpSync(path.join(root, part), path.join(tree, part), { recursive: true });
  const bin = path.join(tree, "bin");
  mkdirSync(bin);
  symlinkSync(
    execFileSync("sh", ["-c", "command -v sh"], { encoding: "utf8" }).trim(),
    path.join(bin, "sh"),
  );
  const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(tree, script), name], {
    cwd: tree,
    env: { ...env, PATH: env.PATH === undefined ? bin : `${env.PATH}:${bin}` },
    encoding: "utf8",
  });
  expect(existsSync(path.join(tree, ".cache", name, "bin"))).toBe(false);
  return { status, stdout, stderr };
}

describe("Prometheus for the tests", () => {
  test("is taken from the configured folder, or else from PATH", () => {
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

  test("is missing if the configured folder is unusable", () => {
    const onPath = folderOf("prometheus", "promtool");
    const half = folderOf("prometheus");
    const { status, stderr } = ask("prometheus", { PATH: onPath, PENSTOCK_TEST_PROMETHEUS: half });
    expect(status).toBe(1);
    expect(stderr).toBe(`PENSTOCK_TEST_PROMETHEUS: there is no promtool in ${half}\n`);
  });

  test("is missing without apt-get", () => {
    const { status, stderr } = ask("prometheus", { PATH: folderOf("prometheus") });
    expect(status).toBe(1);
    expect(stderr).toContain("prometheus cannot be fetched on this host");
    expect(stderr).toContain("PENSTOCK_TEST_PROMETHEUS=/path/to/folder");
    expect(stderr).toMatch(/brew install prometheus/);
  });
});

describe("helm for the tests", () => {
  function helmOf(version: string): string {
    const folder = temporaryFolder();
    write(path.join(folder, "helm"), `#!/bin/sh\necho "${version}+g3fc9f4b"\n`);
    chmodSync(path.join(folder, "helm"), 0o755);
    return folder;
  }

  test("is taken from PATH if it is new enough", () => {
    const onPath = helmOf("v3.8.0");
    expect(ask("helm", { PATH: onPath })).toEqual({
      status: 0,
      stdout: `{"path":"${onPath}/helm"}\n`,
      stderr: "",
    });
  });

  test("is missing if it is too old and cannot be fetched", () => {
    const { status, stderr } = ask("helm", { PATH: helmOf("v2.17.0") });
    expect(status).toBe(1);
    expect(stderr).toContain("helm 3 or newer");
    expect(stderr).toContain("brew install helm");
  });
});

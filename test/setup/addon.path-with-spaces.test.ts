import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { addonSource, linkPackages, setupEnvironment, smallProject, write } from "./setup-kit.ts";

const connectionAddon = "src/gateway/http/addon";

test("set-up builds the addons once in a path with spaces, and reports errors of the compiler", () => {
  const folder = smallProject({ name: "pen stock's #1", npm: "#!/bin/sh\nexit 1\n" });
  linkPackages(folder);
  write(
    path.join(folder, connectionAddon, "binding.gyp"),
    '{"targets":[{"target_name":"connection_id","sources":["connection_id.cc"]}]}',
  );
  write(path.join(folder, connectionAddon, "connection_id.cc"), addonSource);
  const elsewhere = mkdtempSync(path.join(tmpdir(), "penstock-test-tmp-"));
  onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }));
  const setUp = () =>
    spawnSync(process.execPath, [path.join(folder, "scripts/setup.mjs")], {
      cwd: folder,
      env: { ...setupEnvironment(folder), TMPDIR: elsewhere },
      encoding: "utf8",
    });

  expect(setUp()).toMatchObject({
    status: 0,
    stdout:
      "setup: building the native scanner\nsetup: building the connection addon\nsetup: compiling TypeScript\n",
  });
  for (const addon of [
    "src/records/addon/build/Release/tiny.node",
    `${connectionAddon}/build/Release/connection_id.node`,
  ]) {
    execFileSync(process.execPath, ["-e", "require(process.argv[1])", path.join(folder, addon)]);
  }
  expect(setUp()).toMatchObject({ status: 0, stdout: "", stderr: "" });

  const faults = [
    { file: "src/records/addon/tiny.cc", name: "native scanner" },
    { file: `${connectionAddon}/connection_id.cc`, name: "connection addon" },
  ];
  for (const { file } of faults) write(path.join(folder, file), "#error this is wrong\n");
  const failed = setUp();
  expect(failed.status).toBe(0);
  for (const { file, name } of faults) {
    const warning = new RegExp(
      `WARNING: the ${name} was not built, .*\n.* why: .*${path.basename(file)}:1:2: error: .*this is wrong\n.* log: (.*)`,
    ).exec(failed.stdout);
    expect(warning, failed.stdout).not.toBeNull();
    expect(existsSync(warning?.[1] ?? "")).toBe(true);
  }
  expect(readdirSync(elsewhere)).toEqual([]);
});

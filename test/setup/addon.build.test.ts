import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { addonSource, linkPackages, setupEnvironment, smallProject, write } from "./setup-kit.ts";

const connectionAddon = "src/gateway/http/addon";

const npm = "#!/bin/sh\nexit 1\n";

function setUpIn(folder: string) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(folder, "scripts/setup.mjs")],
    { cwd: folder, env: setupEnvironment(folder), encoding: "utf8" },
  );
  return { status, stdout, stderr };
}

test("set-up rejects a path with a space before it installs anything", () => {
  const folder = smallProject({ name: "pen stock", npm });
  expect(setUpIn(folder)).toEqual({
    status: 1,
    stdout: expect.stringContaining(`make does not accept: ${folder}\n  move the checkout`),
    stderr: "",
  });
});

test("set-up builds the addons once", () => {
  const folder = smallProject({ npm });
  linkPackages(folder);
  write(
    path.join(folder, connectionAddon, "binding.gyp"),
    '{"targets":[{"target_name":"connection_id","sources":["connection_id.cc"]}]}',
  );
  write(path.join(folder, connectionAddon, "connection_id.cc"), addonSource);
  const setUp = () => setUpIn(folder);
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
  expect(setUp()).toEqual({ status: 0, stdout: "", stderr: "" });

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
});

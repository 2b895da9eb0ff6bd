import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { findNatsServer } from "../kit/nats-server.ts";
import { isRunning, temporaryFolder } from "../kit/processes.ts";

export const root = path.resolve(import.meta.dirname, "../..");
export const addonSource = `#include <node_api.h>
static napi_value Init(napi_env env, napi_value exports) { return exports; }
NAPI_MODULE(tiny, Init)
`;

export function write(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

export function smallProject({ name = "project", npm }: { name?: string; npm: string }): string {
  const folder = path.join(temporaryFolder(), name);
  for (const file of ["scripts", "package.json", "package-lock.json", "tsconfig.json"]) {
    cpSync(path.join(root, file), path.join(folder, file), { recursive: true });
  }
  write(
    path.join(folder, "src/main.ts"),
    'console.log("one", process.argv[2]);\nprocess.exitCode = 3;\n',
  );
  write(path.join(folder, "src/live/page/page.html"), "<p>one</p>\n");
  write(
    path.join(folder, "src/records/addon/binding.gyp"),
    '{"targets":[{"target_name":"tiny","sources":["tiny.cc"]}]}',
  );
  write(path.join(folder, "src/records/addon/tiny.cc"), addonSource);
  write(path.join(folder, "bin/npm"), npm);
  chmodSync(path.join(folder, "bin/npm"), 0o755);
  return folder;
}

export function linkPackages(folder: string): void {
  symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"));
}

export function setupEnvironment(folder: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PATH: `${folder}/bin:${process.env["PATH"]}`,
    PENSTOCK_NATS_SERVER: findNatsServer(),
  };
}

export type SetUp = ChildProcess & { said: () => string };

export function setUp(folder: string, env = setupEnvironment(folder)): SetUp {
  const child = spawn(process.execPath, [path.join(folder, "scripts/setup.mjs")], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  return Object.assign(child, { said: () => said });
}

/**
 * A process that ended but was not waited for counts as ended, because some containers have no init
 * that waits.
 */
export function stillRuns(pid: number): boolean {
  try {
    if (/\) [ZX] [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) return false;
  } catch {}
  return isRunning(pid);
}

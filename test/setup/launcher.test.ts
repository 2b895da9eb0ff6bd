import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";
import { root, write } from "./setup-kit.ts";

const main = `const { pid, execArgv, argv, env } = process;
console.log(JSON.stringify({ pid, execArgv, args: argv.slice(2), data: env.PENSTOCK_DATA_DIR }));
`;

function cloneOf(mainText: string): string {
  const folder = path.join(temporaryFolder(), "my clone");
  mkdirSync(path.join(folder, "scripts"), { recursive: true });
  for (const file of ["penstock", "scripts/launch.sh"])
    cpSync(path.join(root, file), path.join(folder, file));
  symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  write(path.join(folder, "package.json"), '{"type":"module"}');
  write(path.join(folder, "dist/main.js"), mainText);
  return folder;
}

/** Runs the launcher by a link in another folder. */
function launch(clone: string, args: readonly string[], settings: Record<string, string> = {}) {
  const folder = temporaryFolder();
  const link = path.join(folder, "penstock");
  symlinkSync(path.join(clone, "penstock"), link);
  const { PENSTOCK_DATA_DIR: _, ...env } = process.env;
  const options = { cwd: folder, env: { ...env, ...settings }, encoding: "utf8" } as const;
  return spawnSync(link, args, options);
}

describe("the launcher", () => {
  test("runs the penstock of its clone from any folder", () => {
    expect(launch(root, ["--version"])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
  });

  test("passes the arguments, and the data folder of its clone unless one is set", () => {
    const clone = cloneOf(main);
    const started = (args: readonly string[], settings?: Record<string, string>) =>
      JSON.parse(launch(clone, args, settings).stdout);
    expect(started(["tail", "--event", "two words"])).toMatchObject({
      execArgv: [],
      args: ["tail", "--event", "two words"],
      data: path.join(clone, "data"),
    });
    expect(started(["sink", "parquet"], { PENSTOCK_DATA_DIR: "elsewhere" })).toMatchObject({
      execArgv: ["--max-semi-space-size=32"],
      data: "elsewhere",
    });
    expect(started(["up"]).execArgv).toEqual(["--max-semi-space-size=8"]);
  });

  test("becomes penstock, so that SIGKILL to it leaves no process", () => {
    const launched = launch(cloneOf(main), ["up"]);
    expect(JSON.parse(launched.stdout).pid).toBe(launched.pid);
    const killed = launch(cloneOf("process.kill(process.pid, 'SIGKILL');\n"), ["up"]);
    expect(killed).toMatchObject({ status: null, signal: "SIGKILL" });
  });

  test("reports a clone that is not built", () => {
    const clone = cloneOf(main);
    rmSync(path.join(clone, "dist"), { recursive: true });
    expect(launch(clone, ["up"])).toMatchObject({
      status: 1,
      stderr: `Penstock is not built: run \`npm run setup\` in ${clone} first\n`,
    });
  });
});

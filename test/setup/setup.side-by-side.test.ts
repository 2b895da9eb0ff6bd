// npm and apt-get are stand-ins: each runs, with a helper, while its file `.slow` exists, and then
// fails.

import { chmodSync, existsSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ended } from "../kit/processes.ts";
import { type SetUp, setUp, smallProject, stillRuns, write } from "./setup-kit.ts";

const programs = ["npm", "apt-get"] as const;
type Program = (typeof programs)[number];

function slow(folder: string, program: Program): string {
  return `#!/bin/sh
[ "$1" != pack ] || exit 1
(while [ -f ${folder}/${program}.slow ]; do sleep 0.02; done) &
echo $$ $! > ${folder}/${program}.next && mv ${folder}/${program}.next ${folder}/${program}.pids
wait
echo "E: ${program} has failed"
exit 1
`;
}

function slowProject(): string {
  const folder = smallProject({ npm: "" });
  const bin = path.join(folder, "bin");
  const standIns: Record<string, string> = { "dpkg-deb": "", dpkg: "", python3: "", make: "" };
  standIns["g++"] = "#!/bin/sh\nwhile read -r line; do :; done\n";
  for (const program of programs) standIns[program] = slow(folder, program);
  for (const [name, text] of Object.entries(standIns)) {
    write(path.join(bin, name), text === "" ? "#!/bin/sh\necho amd64\n" : text);
    chmodSync(path.join(bin, name), 0o755);
  }
  for (const name of ["sh", "sleep", "mv"]) symlinkSync(`/bin/${name}`, path.join(bin, name));
  for (const program of programs) {
    write(path.join(folder, `${program}.slow`), "");
    onTestFinished(() => end(folder, program));
  }
  return folder;
}

function start(folder: string): SetUp {
  return setUp(folder, { PATH: path.join(folder, "bin") });
}

function end(folder: string, program: Program): void {
  rmSync(path.join(folder, `${program}.slow`), { force: true });
}

async function pidsOf(folder: string, program: Program): Promise<number[]> {
  const file = path.join(folder, `${program}.pids`);
  await expect.poll(() => existsSync(file), { interval: 5, timeout: 30_000 }).toBe(true);
  return readFileSync(file, "utf8").trim().split(" ").map(Number);
}

async function bothOf(folder: string): Promise<number[]> {
  const pids = [...(await pidsOf(folder, "npm")), ...(await pidsOf(folder, "apt-get"))];
  expect(pids.filter(stillRuns)).toHaveLength(4);
  return pids;
}

describe("set-up with npm and apt-get at the same time", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "ends both programs after %s",
    async (signal) => {
      const folder = slowProject();
      const run = start(folder);
      const pids = await bothOf(folder);
      run.kill(signal);
      expect(await ended(run)).toBe(128 + constants.signals[signal]);
      expect(run.said()).toContain(`stopped: interrupted by ${signal}`);
      expect(pids.filter(stillRuns)).toEqual([]);
      expect(existsSync(path.join(folder, ".cache/setup.lock"))).toBe(false);
    },
  );

  test.each([
    ["npm", "npm ci failed"],
    ["apt-get", "nats-server could not be fetched"],
  ] as const)("ends both programs if %s fails", async (program, message) => {
    const folder = slowProject();
    const run = start(folder);
    const pids = await bothOf(folder);
    end(folder, program);
    expect(await ended(run)).toBe(1);
    expect(run.said()).toContain(message);
    expect(run.said()).toContain(`E: ${program} has failed`);
    expect(run.said().match(/stopped:/g)).toHaveLength(1);
    expect(pids.filter(stillRuns)).toEqual([]);
    expect(existsSync(path.join(folder, ".cache/setup.lock"))).toBe(false);
  });

  test("waits for both programs if an earlier set-up was killed by SIGKILL", async () => {
    const folder = slowProject();
    const first = start(folder);
    await bothOf(folder);
    const programOf = new Map<number, Program>();
    for (const program of programs) programOf.set((await pidsOf(folder, program))[0]!, program);
    // A program may run a moment before set-up has written its process group into the lock.
    const inLock = (): number[] =>
      readFileSync(path.join(folder, ".cache/setup.lock"), "utf8").trim().split("\n").map(Number);
    await expect.poll(() => inLock().length, { interval: 5 }).toBe(3);
    const [own, one, other] = inLock();
    expect(own).toBe(first.pid);
    expect(new Set([one, other])).toEqual(new Set(programOf.keys()));
    first.kill("SIGKILL");
    await ended(first);

    const second = start(folder);
    const waitsFor = (pid: number | undefined) =>
      expect
        .poll(second.said, { interval: 5, timeout: 30_000 })
        .toContain(`waiting for what a killed set-up left running as process ${pid}\n`);
    await waitsFor(one);
    expect(second.said()).not.toContain(`process ${other}`);
    end(folder, programOf.get(one!)!);
    await waitsFor(other);
    expect(second.said()).not.toContain("installing packages");
    end(folder, programOf.get(other!)!);
    expect(await ended(second)).toBe(1);
    expect(second.said()).toContain("installing packages (npm ci)");
  });
});

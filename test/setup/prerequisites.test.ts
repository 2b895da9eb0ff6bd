import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";

const root = path.resolve(import.meta.dirname, "../..");

function setUpWith(programs: string[]): { status: number | null; out: string; folder: string } {
  const folder = temporaryFolder();
  cpSync(path.join(root, "scripts"), path.join(folder, "scripts"), { recursive: true });
  for (const file of ["package.json", "package-lock.json"])
    cpSync(path.join(root, file), path.join(folder, file));
  const bin = path.join(folder, "bin");
  mkdirSync(bin);
  for (const program of programs) {
    const found = execFileSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim();
    symlinkSync(found, path.join(bin, program));
  }
  const done = spawnSync(process.execPath, [path.join(folder, "scripts/setup.mjs")], {
    cwd: folder,
    env: { PATH: bin },
    encoding: "utf8",
  });
  return { status: done.status, out: done.stdout + done.stderr, folder };
}

describe("set-up", () => {
  test("stops before any change if only the compiler is missing", () => {
    const { status, out, folder } = setUpWith(["npm", "python3", "make"]);
    expect(status).toBe(1);
    expect(out).toMatch(/missing on this host: g\+\+$/m);
    expect(out).toContain("sudo apt-get install g++");
    expect(existsSync(path.join(folder, "node_modules"))).toBe(false);
  });

  test("names all programs if all are missing", () => {
    const { status, out } = setUpWith([]);
    expect(status).toBe(1);
    expect(out).toContain("missing on this host: npm, python3, make, g++");
    expect(out).toContain("sudo dnf install nodejs-npm python3 make gcc-c++");
  });
});

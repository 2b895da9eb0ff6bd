// The command that `up` offers to copy is one that works in the shell `up` was started from.

import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { calledAs } from "../../src/cli/called-as.ts";
import { temporaryFolder } from "../../testkit/processes.ts";

describe("a command to copy works where it was started", () => {
  test("in a checkout by npm, from elsewhere by npm or by the script, in a bundle by its launcher", () => {
    const root = temporaryFolder();
    const mainFile = path.join(root, "dist", "main.js");
    const by = (workingFolder: string, npmFolder?: string) =>
      calledAs({ mainFile, workingFolder, npmFolder });
    expect(by(root)).toBe("npm run penstock --");
    expect(by(root, path.join(root, "docs"))).toBe("npm run penstock --");
    expect(by(root, "/")).toBe(`npm --prefix ${root} run penstock --`);
    expect(by("/")).toBe(`node ${root}/scripts/run.mjs`);
    mkdirSync(path.join(root, "bin"));
    writeFileSync(path.join(root, "bin", "penstock"), "");
    expect(by("/")).toBe(`${root}/bin/penstock`);
    // Also when an npm script of somebody else's started it.
    expect(by(root, root)).toBe(`${root}/bin/penstock`);
  });

  test("a folder is quoted where a shell would take it apart", () => {
    const root = path.join(temporaryFolder(), "it's a folder");
    mkdirSync(path.join(root, "bin"), { recursive: true });
    writeFileSync(path.join(root, "bin", "penstock"), "");
    const called = calledAs({
      mainFile: path.join(root, "dist", "main.js"),
      workingFolder: "/",
      npmFolder: undefined,
    });
    expect(called).toBe(`'${root.replace("'", "'\\''")}/bin/penstock'`);
  });
});

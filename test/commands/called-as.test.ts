import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { calledAs } from "../../src/commands/called-as.ts";
import { temporaryFolder } from "../kit/processes.ts";

describe("the command in the output of `penstock up`", () => {
  test("begins with the launcher of the clone or of the package", () => {
    const root = temporaryFolder();
    const mainFile = path.join(root, "dist", "main.js");
    const by = (workingFolder: string, npmFolder?: string) =>
      calledAs({ mainFile, workingFolder, npmFolder });
    expect(by(root)).toBe("./penstock");
    expect(by(root, path.join(root, "docs"))).toBe(`${root}/penstock`);
    expect(by(root, "/")).toBe(`${root}/penstock`);
    expect(by("/")).toBe(`${root}/penstock`);
    mkdirSync(path.join(root, "bin"));
    writeFileSync(path.join(root, "bin", "penstock"), "");
    expect(by("/")).toBe(`${root}/bin/penstock`);
    expect(by(root, root)).toBe(`${root}/bin/penstock`);
  });

  test("quotes a folder name with special characters", () => {
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

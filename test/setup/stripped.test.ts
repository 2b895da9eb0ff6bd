import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";
import { write } from "./setup-kit.ts";

const main = path.join(import.meta.dirname, "../kit/stripped.mjs");

function run(file: string): string {
  const args = [`--import=${main}`, "--disable-warning=ExperimentalWarning", file];
  const done = spawnSync(process.execPath, args, { encoding: "utf8" });
  return done.stdout + done.stderr;
}

test("a test process runs the current text of a changed file", () => {
  const file = path.join(temporaryFolder(), "program.ts");
  const text = (said: string): string =>
    `interface Said {\n  text: string;\n}\nconst said: Said = { text: "${said} of ${file}" };\n`;
  write(file, `${text("one")}console.log(said.text);\n`);
  expect([run(file), run(file)]).toEqual(Array(2).fill(`one of ${file}\n`));
  write(file, `${text("two")}console.log(said.text);\nthrow new Error("third" as string);\n`);
  for (let time = 0; time < 2; time++) {
    const said = run(file);
    expect(said).toContain(`two of ${file}\n`);
    expect(said).toContain("Error: third");
    expect(said).toContain(`${file}:6:7`);
  }
});

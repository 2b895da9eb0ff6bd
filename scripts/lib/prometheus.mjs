// Sees to Prometheus and promtool, which only the tests of deploy/ need: those in the folder named,
// those on PATH, those fetched before, else the package of the distribution.

import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fetchPackage } from "./debian-package.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir, SetupError, versionOf } from "./project.mjs";

const prometheusDir = join(cacheDir, "prometheus");
const keptDir = join(prometheusDir, "bin");
const programs = ["prometheus", "promtool"];
const versionPattern = /version (\d+)\.(\d+)\.(\d+)/;

const waysToInstall = [
  "the tests of deploy/ run Prometheus and promtool: install both and run this again, or name the folder that has",
  "them: PENSTOCK_TEST_PROMETHEUS=/path/to/folder",
  "  Debian, Ubuntu:  sudo apt-get install prometheus promtool   (promtool is in prometheus up to Debian 12)",
  "  macOS:           brew install prometheus",
  "  others:          the releases page of the project prometheus/prometheus on GitHub",
].join("\n");

/**
 * The folder that has both, or undefined when they are to be fetched. Throws a SetupError when the
 * one that was named has not.
 */
export function prometheusFolder() {
  const named = process.env.PENSTOCK_TEST_PROMETHEUS;
  if (named !== undefined && named !== "") {
    const fault = faultOf(named);
    if (fault !== undefined) throw new SetupError(`PENSTOCK_TEST_PROMETHEUS: ${fault}`);
    return named;
  }
  const onPath = findOnPath("prometheus");
  return [onPath === undefined ? undefined : dirname(onPath), keptDir].find(
    (folder) => folder !== undefined && faultOf(folder) === undefined,
  );
}

/**
 * On Debian 12 28 MB, package lists included, and 94 MB on disk; on Debian 13 42 MB and 160 MB.
 * Seconds on a fast line.
 */
export async function fetchPrometheus(runner) {
  announce("the tests of deploy/ run Prometheus: 30 to 50 MB are fetched, once");
  await fetchPackage(
    {
      name: "prometheus",
      // From Debian 13 on a package of its own.
      also: ["promtool"],
      dir: prometheusDir,
      // Any version will do, so the host's own release is asked, whose libraries the host has.
      suites: ({ codename }) => [codename],
      keep,
      notDebian: "no Prometheus was found",
      waysToInstall,
    },
    runner,
  );
}

function keep(unpacked) {
  const folder = join(unpacked, "usr", "bin");
  const fault = faultOf(folder);
  if (fault !== undefined) return fault;
  rmSync(keptDir, { recursive: true, force: true });
  renameSync(folder, keptDir);
  return undefined;
}

/** What keeps the two of that folder from being used, or undefined. */
function faultOf(folder) {
  const missing = programs.find((program) => !existsSync(join(folder, program)));
  if (missing !== undefined) return `there is no ${missing} in ${folder}`;
  const broken = programs.find(
    (program) => versionOf(join(folder, program), versionPattern) === undefined,
  );
  return broken === undefined ? undefined : `${broken} does not run on this host: ${folder}`;
}

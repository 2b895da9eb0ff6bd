// Sees to a ClickHouse server, which only the tests of that sink need: the program that is named,
// the one on PATH, the one fetched before, else the distribution's package with the libraries that
// the host lacks. A host that can have none goes without; the tests say so. Starts nothing.

import { spawnSync } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fetchPackage } from "./debian-package.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir, SetupError } from "./project.mjs";

const dir = join(cacheDir, "clickhouse");
const keptDir = join(dir, "kept");
const name = "clickhouse-server";

/**
 * The command that a server is started by, and the folders of libraries that were fetched with it;
 * or why there is none. Throws a SetupError when the program that was named will
 * not do.
 */
export async function clickhouse(runner) {
  const named = process.env.PENSTOCK_TEST_CLICKHOUSE;
  if (named !== undefined && named !== "") {
    const found = answerOf({ command: commandOf(named) });
    if (found === undefined)
      throw new SetupError(`PENSTOCK_TEST_CLICKHOUSE: ${named} does not run as a ClickHouse`);
    return found;
  }
  const found = [...onPath(), kept()].map(answerOf).find((one) => one !== undefined);
  if (found !== undefined) return found;
  try {
    announce("the tests of the sink in ClickHouse run one: some 45 MB are fetched, once");
    await fetchPackage(
      {
        name,
        also: librariesOf,
        dir,
        suites: ({ codename }) => [codename],
        keep,
        notDebian: "no ClickHouse was found",
        waysToInstall:
          "install ClickHouse to have them run, or name its program: PENSTOCK_TEST_CLICKHOUSE=/path/to/clickhouse",
      },
      runner,
    );
    return answerOf(kept());
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return { why: error.message };
  }
}

/** Newer releases are one program for everything. */
function commandOf(program) {
  return /server$/.test(program) ? [program] : [program, "server"];
}

function onPath() {
  return [name, "clickhouse"].flatMap((program) => {
    const found = findOnPath(program);
    return found === undefined ? [] : [{ command: commandOf(found) }];
  });
}

function kept(folder = keptDir) {
  // Libraries lie in a folder named after the architecture.
  const triple = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch] ?? "";
  const libraries = ["usr/lib", "lib"].map((lib) => join(folder, lib, triple)).join(delimiter);
  return { command: [join(folder, "usr", "sbin", name)], libraries };
}

/** Of all that the server needs, the libraries that are not on the host. */
async function librariesOf(ask) {
  const plan = await ask("apt-get", "-s", "--no-install-recommends", "install", name);
  const lacking = [...plan.said.matchAll(/^Inst (\S+)/gm)].map(([, one]) => one);
  return lacking.filter((one) => /^lib|^clickhouse-common$/.test(one));
}

function keep(unpacked) {
  if (answerOf(kept(unpacked)) === undefined) return "its server does not run on this host";
  rmSync(keptDir, { recursive: true, force: true });
  renameSync(unpacked, keptDir);
  return undefined;
}

function answerOf({ command, libraries }) {
  const [program, ...args] = command;
  if (!existsSync(program)) return undefined;
  const env =
    libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  const { status, stdout, stderr } = spawnSync(program, [...args, "--version"], {
    env,
    encoding: "utf8",
  });
  // Older ones know no such option, and say so in their own words.
  const runs = status === 0 ? /version \d/.test(stdout) : stderr?.includes("Unknown option");
  return runs ? { command, libraries } : undefined;
}

// Sees to a PostgreSQL server, which only tests need: the programs in the folder named, those where
// distributions keep them, those on PATH, those fetched before, else the distribution's package
// with the libraries that the host lacks. Starts nothing.

import { spawnSync } from "node:child_process";
import { existsSync, realpathSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fetchPackage, listOf } from "./debian-package.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir, SetupError } from "./project.mjs";

const postgresDir = join(cacheDir, "postgres");
const keptDir = join(postgresDir, "kept");
const programs = ["postgres", "initdb"];
const versionLeast = 13;

const waysToInstall = [
  "the tests of the store in PostgreSQL run a PostgreSQL of 13 or newer: install one and run this again, or",
  "name the folder of its programs postgres and initdb: PENSTOCK_TEST_POSTGRES=/path/to/bin",
  "  Debian, Ubuntu:  sudo apt-get install postgresql",
  "  macOS:           brew install postgresql@17",
  "  others:          the distribution's package of the PostgreSQL server",
].join("\n");

/**
 * The folder of the programs, their version and the folder of libraries that were fetched with
 * them, as JSON; undefined when they are to be fetched. Throws a SetupError when the folder that
 * was named will not do.
 */
export function findPostgres() {
  const named = process.env.PENSTOCK_TEST_POSTGRES;
  if (named !== undefined && named !== "") {
    const fault = faultOf({ bin: named });
    if (fault !== undefined) throw new SetupError(`PENSTOCK_TEST_POSTGRES: ${fault}`);
    return answer({ bin: named });
  }
  const found = [...installed(), ...fetched()].find((one) => faultOf(one) === undefined);
  return found === undefined ? undefined : answer(found);
}

function answer({ bin, libraries }) {
  return JSON.stringify({ bin, libraries, version: versionIn({ bin, libraries }) });
}

/** Distributions keep several versions side by side: the newest first. */
function installed() {
  const homes = ["/usr/lib/postgresql", "/usr/local/opt", "/opt/homebrew/opt"];
  const folders = homes.flatMap((home) =>
    listOf(home)
      .map((name) => ({ home, name, number: Number(/^(?:postgresql@)?(\d+)$/.exec(name)?.[1]) }))
      .filter(({ number }) => number >= versionLeast),
  );
  folders.sort((a, b) => b.number - a.number);
  const onPath = findOnPath("postgres");
  return [
    ...folders.map(({ home, name }) => ({ bin: join(home, name, "bin") })),
    // A link on PATH may stand alone; initdb lies beside the program itself.
    ...(onPath === undefined ? [] : [{ bin: dirname(realpathSync(onPath)) }]),
  ];
}

function fetched(kept = keptDir) {
  const usr = join(kept, "usr");
  const home = join(usr, "lib", "postgresql");
  // Libraries lie in a folder named after the architecture.
  const triple = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch] ?? "";
  const libraries = join(usr, "lib", triple);
  return listOf(home).map((name) => ({ bin: join(home, name, "bin"), libraries }));
}

/** Debian 12: 30 MB with package lists, 80 MB on disk. */
export async function fetchPostgres(runner) {
  announce("the tests of the store in PostgreSQL run one: some 30 MB are fetched, once");
  await fetchPackage(
    {
      // The package of this name has nothing in it but a dependency on the release's own version.
      name: "postgresql",
      also: serverAndLibraries,
      dir: postgresDir,
      suites: ({ codename }) => [codename],
      keep,
      notDebian: `no PostgreSQL of ${versionLeast} or newer was found`,
      waysToInstall,
    },
    runner,
  );
}

/**
 * The server's package, and of what it needs the libraries that are not on the host. The compiler
 * of queries is left out: it is larger than all the rest, and the server runs without it.
 */
async function serverAndLibraries(ask) {
  const depends = await ask("apt-cache", "depends", "postgresql");
  const server = /Depends: (postgresql-\d+)/.exec(depends.said)?.[1];
  if (server === undefined) return [];
  const plan = await ask("apt-get", "-s", "--no-install-recommends", "install", server);
  const lacking = [...plan.said.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name);
  return [server, ...lacking.filter((name) => /^lib(?!llvm|perl|.*-perl$)/.test(name))];
}

function keep(unpacked) {
  const [found] = fetched(unpacked);
  if (found === undefined) return "it has no server";
  const fault = faultOf(found);
  if (fault !== undefined) return fault;
  rmSync(keptDir, { recursive: true, force: true });
  renameSync(unpacked, keptDir);
  return undefined;
}

/** What keeps the programs of that folder from being used, or undefined. */
function faultOf(one) {
  const missing = programs.find((program) => !existsSync(join(one.bin, program)));
  if (missing !== undefined) return `there is no ${missing} in ${one.bin}`;
  const version = versionIn(one);
  if (version === undefined) return `postgres does not run on this host: ${one.bin}`;
  return Number.parseInt(version, 10) >= versionLeast
    ? undefined
    : `${one.bin} has PostgreSQL ${version}, ${versionLeast} or newer is needed`;
}

function versionIn({ bin, libraries }) {
  const env =
    libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  // Root may ask for the version; no more than that.
  const { status, stdout } = spawnSync(join(bin, "postgres"), ["--version"], {
    env,
    encoding: "utf8",
  });
  return status === 0 ? /\(PostgreSQL\) (\d+[.\w]*)/.exec(stdout)?.[1] : undefined;
}

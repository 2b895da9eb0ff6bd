// Sees to a nats-server: the one named, the one on PATH, those fetched before, else the newest
// package that the distribution's suites offer. An older one that is here stays usable: a newer one
// is asked for now and then, and only where that can be had.

import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { cannotFetch, fetchPackage, listOf } from "./debian-package.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir, isAtLeast, SetupError, versionOf } from "./project.mjs";
import { writeStamp } from "./stamps.mjs";

const natsDir = join(cacheDir, "nats-server");
/** `sync_interval: always` came with it. */
const versionLeast = [2, 10];
/**
 * What the tests run on beside the oldest. Whoever has it, or a newer one, is not asked to fetch.
 */
const versionWanted = [2, 15];
const versionPattern = /v(\d+)\.(\d+)\.(\d+)/;
const stamp = "nats-server";
const hourMs = 3_600_000;
/** How soon an archive that has nothing newer is asked again; and one that could not be reached. */
const againAfterMs = { asked: 7 * 24 * hourMs, unreachable: hourMs };

const waysToInstall = [
  "install nats-server 2.10 or newer and run this again, or name it: PENSTOCK_NATS_SERVER=/path/to/nats-server",
  "  macOS:     brew install nats-server",
  "  with Go:   go install github.com/nats-io/nats-server/v2@latest",
  "  others:    the releases page of the project nats-io/nats-server on GitHub",
  "  or use a NATS you run already: PENSTOCK_NATS_URL=nats://host:4222",
].join("\n");

/** Newest first. */
function fetchedVersions() {
  return listOf(natsDir)
    .filter(
      (name) => /^\d+\.\d+\.\d+$/.test(name) && existsSync(join(natsDir, name, "nats-server")),
    )
    .map((name) => name.split(".").map(Number))
    .sort((a, b) => (isAtLeast(a, b) ? -1 : 1));
}

/**
 * The newest one that is here, as a version, or undefined. Throws a SetupError when the one that
 * was named will not do.
 */
function versionHere() {
  const named = process.env.PENSTOCK_NATS_SERVER;
  if (named !== undefined && named !== "") {
    const version = versionOf(named, versionPattern);
    if (version === undefined) throw new SetupError(`PENSTOCK_NATS_SERVER does not run: ${named}`);
    if (isAtLeast(version, versionLeast)) return version;
    throw new SetupError(
      `PENSTOCK_NATS_SERVER is ${version.join(".")}, 2.10 or newer is needed: ${named}`,
    );
  }
  const [fetched] = fetchedVersions();
  // What a program on PATH says of itself takes time to ask, and matters only where it saves a
  // fetch.
  if (fetched !== undefined && isAtLeast(fetched, versionWanted)) return fetched;
  const onPath = findOnPath("nats-server");
  const found = onPath === undefined ? undefined : versionOf(onPath, versionPattern);
  return found !== undefined && isAtLeast(found, versionLeast) ? found : fetched;
}

/** The user's own choice: it is embedded as it is, and nothing newer is fetched in its place. */
function isChosen() {
  if ((process.env.PENSTOCK_NATS_SERVER ?? "") !== "") return true;
  const onPath = findOnPath("nats-server");
  const found = onPath === undefined ? undefined : versionOf(onPath, versionPattern);
  return found !== undefined && isAtLeast(found, versionLeast);
}

/** The gateway goes to a NATS that runs already; only `up` and the tests start a nats-server. */
function isElsewhere() {
  return (process.env.PENSTOCK_NATS_URL ?? "") !== "";
}

/**
 * Before anything is built: throws a SetupError where there is no nats-server, none can be fetched
 * and one is needed.
 */
export function requireNatsServer() {
  if (versionHere() !== undefined || isElsewhere()) return;
  if (cannotFetch())
    throw new SetupError(`no nats-server of 2.10 or newer was found\n${waysToInstall}`);
}

/**
 * Brings the newest one, when there is none, or an older one and nobody has asked for a newer one
 * lately.
 */
export async function bringNatsServer(runner) {
  const here = versionHere();
  if (here === undefined) {
    if (isElsewhere()) return await fetchIfPossible(runner);
    return await fetchNatsServer(runner);
  }
  if (isAtLeast(here, versionWanted) || isChosen() || cannotFetch() || !isDue()) return;
  await tryNewer(here, runner);
}

async function fetchIfPossible(runner) {
  try {
    await fetchNatsServer(runner);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    runner.throwIfInterrupted();
    announce("no nats-server can be had here; PENSTOCK_NATS_URL names one that runs elsewhere");
  }
}

async function tryNewer(here, runner) {
  let fault;
  try {
    await fetchNatsServer(runner, here);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    runner.throwIfInterrupted();
    fault = error.message;
  }
  const wasReached = fault === undefined || fault.includes(nothingNewer);
  writeStamp(
    stamp,
    `${Date.now() + (wasReached ? againAfterMs.asked : againAfterMs.unreachable)}\n`,
  );
  if (fault !== undefined && !wasReached)
    announce(`nats-server ${here.join(".")} stays: no newer one can be fetched now`);
}

function isDue() {
  try {
    return Date.now() >= Number(readFileSync(join(cacheDir, "stamps", stamp), "utf8"));
  } catch {
    return true;
  }
}

const nothingNewer = "no newer one";

/** `newerThan`: a version that is here; what is not newer is not kept. */
async function fetchNatsServer(runner, newerThan) {
  await fetchPackage(
    {
      name: "nats-server",
      dir: natsDir,
      // The newest first. A Debian host has the keys of the releases to come; Ubuntu's mirrors have
      // Ubuntu's suites only.
      suites: ({ isUbuntu, codename }) => {
        if (newerThan !== undefined) return [isUbuntu ? "devel" : "forky"];
        return isUbuntu ? ["devel", codename] : ["forky", "trixie", "stable"];
      },
      keep: (unpacked) => keep(join(unpacked, "usr", "sbin", "nats-server"), newerThan),
      notDebian: "no nats-server of 2.10 or newer was found",
      waysToInstall,
      isOptional: newerThan !== undefined || isElsewhere(),
    },
    runner,
  );
}

/**
 * One of the oldest line that is supported, for the tests: the one named, else one fetched before.
 * Undefined: there is none yet.
 */
export function oldestNatsServer() {
  const named = process.env.PENSTOCK_TEST_NATS_OLDEST;
  if (named !== undefined && named !== "") return named;
  const found = fetchedVersions().find((version) => version[0] === 2 && version[1] === 10);
  return found === undefined ? undefined : join(natsDir, found.join("."), "nats-server");
}

export async function fetchOldestNatsServer(runner) {
  const waysToInstall =
    "name one of 2.10 for the tests: PENSTOCK_TEST_NATS_OLDEST=/path/to/nats-server";
  await fetchPackage(
    {
      name: "nats-server",
      dir: natsDir,
      suites: ({ isUbuntu }) => (isUbuntu ? [] : ["trixie"]),
      keep: (unpacked) => keep(join(unpacked, "usr", "sbin", "nats-server")),
      notDebian: "no nats-server 2.10 was found",
      waysToInstall,
    },
    runner,
  );
  if (oldestNatsServer() === undefined)
    throw new SetupError(`no nats-server 2.10 was found\n${waysToInstall}`);
}

function keep(binary, newerThan) {
  const version = versionOf(binary, versionPattern);
  if (version === undefined) return "its nats-server does not run on this host";
  if (!isAtLeast(version, versionLeast))
    return `it has nats-server ${version.join(".")}, 2.10 or newer is needed`;
  if (newerThan !== undefined && isAtLeast(newerThan, version))
    return `${nothingNewer} than ${newerThan.join(".")}`;
  const target = join(natsDir, version.join("."));
  rmSync(target, { recursive: true, force: true });
  renameSync(dirname(binary), target);
  return undefined;
}

// Finds a nats-server: the configured program, a program on PATH, or a fetched program. Otherwise,
// fetches the newest package of the distribution.

import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { canFetch, fetchPackage } from "./debian.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir, isAtLeast, listOf, SetupError, versionOf } from "./project.mjs";

const natsDir = join(cacheDir, "nats-server");
/** The first version with `sync_interval: always`. */
const versionLeast = [2, 10];
const versionPattern = /v(\d+)\.(\d+)\.(\d+)/;

const help = [
  "install nats-server 2.10 or newer and run this again, or name it: PENSTOCK_NATS_SERVER=/path/to/nats-server",
  "  macOS:     brew install nats-server",
  "  with Go:   go install github.com/nats-io/nats-server/v2@latest",
  "  others:    the releases page of the project nats-io/nats-server on GitHub",
  "  or use a NATS you run already: PENSTOCK_NATS_URL=nats://host:4222",
].join("\n");

function isHere() {
  const named = process.env.PENSTOCK_NATS_SERVER ?? "";
  if (named !== "") {
    const version = versionOf(named, versionPattern);
    if (version === undefined) throw new SetupError(`PENSTOCK_NATS_SERVER does not run: ${named}`);
    if (isAtLeast(version, versionLeast)) return true;
    throw new SetupError(
      `PENSTOCK_NATS_SERVER is ${version.join(".")}, 2.10 or newer is needed: ${named}`,
    );
  }
  if (fetched().length > 0) return true;
  const onPath = findOnPath("nats-server");
  const version = onPath === undefined ? undefined : versionOf(onPath, versionPattern);
  return version !== undefined && isAtLeast(version, versionLeast);
}

export function fetched() {
  return listOf(natsDir)
    .filter((name) => /^\d+\.\d+\.\d+$/.test(name))
    .map((name) => join(natsDir, name, "nats-server"))
    .filter(existsSync);
}

function isElsewhere() {
  return (process.env.PENSTOCK_NATS_URL ?? "") !== "";
}

/** Throws a SetupError, before any build, if a nats-server is needed but not available. */
export function requireNatsServer() {
  if (isHere() || isElsewhere() || canFetch()) return;
  throw new SetupError(`no nats-server of 2.10 or newer was found\n${help}`);
}

export async function bringNatsServer(runner) {
  if (isHere()) return;
  try {
    // The suites, newest first. Ubuntu's mirrors only have Ubuntu's suites.
    await fetchFrom(({ isUbuntu }) => (isUbuntu ? ["devel"] : ["forky", "trixie"]), runner);
  } catch (error) {
    if (!(error instanceof SetupError) || !isElsewhere()) throw error;
    runner.throwIfInterrupted();
    announce("no nats-server is available here; PENSTOCK_NATS_URL names one that runs elsewhere");
  }
}

export function fetchFrom(suites, runner) {
  return fetchPackage({ name: "nats-server", dir: natsDir, suites, keep, help }, runner);
}

function keep(unpacked) {
  const binary = join(unpacked, "usr", "sbin", "nats-server");
  const version = versionOf(binary, versionPattern);
  if (version === undefined) return "its nats-server does not run on this host";
  if (!isAtLeast(version, versionLeast))
    return `it has nats-server ${version.join(".")}, 2.10 or newer is needed`;
  const target = join(natsDir, version.join("."));
  rmSync(target, { recursive: true, force: true });
  renameSync(dirname(binary), target);
  return undefined;
}

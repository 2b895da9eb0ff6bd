// Sees to a nats-server of 2.10 or newer: the one named, the one on PATH, the one fetched before, else the package of
// the distribution.

import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fetchPackage, listOf } from "./debian-package.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { cacheDir, isAtLeast, SetupError, versionOf } from "./project.mjs";

const natsDir = join(cacheDir, "nats-server");
const versionLeast = [2, 10];
const versionPattern = /v(\d+)\.(\d+)\.(\d+)/;

const waysToInstall = [
  "install nats-server 2.10 or newer and run this again, or name it: PENSTOCK_NATS_SERVER=/path/to/nats-server",
  "  macOS:     brew install nats-server",
  "  with Go:   go install github.com/nats-io/nats-server/v2@latest",
  "  others:    the releases page of the project nats-io/nats-server on GitHub",
  "  or use a NATS you run already: PENSTOCK_NATS_URL=nats://host:4222",
].join("\n");

/** The newest fetched nats-server, or undefined. */
export function cachedNatsServer() {
  const found = listOf(natsDir)
    .filter((name) => /^\d+\.\d+\.\d+$/.test(name) && existsSync(join(natsDir, name, "nats-server")))
    .sort((a, b) => (isAtLeast(a.split(".").map(Number), b.split(".").map(Number)) ? -1 : 1));
  return found[0] === undefined ? undefined : join(natsDir, found[0], "nats-server");
}

/** True when there is nothing to fetch. Throws a SetupError when the one that was named will not do. */
export function hasNatsServer() {
  const named = process.env.PENSTOCK_NATS_SERVER;
  if (named !== undefined && named !== "") {
    const version = versionOf(named, versionPattern);
    if (version === undefined) throw new SetupError(`PENSTOCK_NATS_SERVER does not run: ${named}`);
    if (isAtLeast(version, versionLeast)) return true;
    throw new SetupError(`PENSTOCK_NATS_SERVER is ${version.join(".")}, 2.10 or newer is needed: ${named}`);
  }
  if (cachedNatsServer() !== undefined) return true;
  const onPath = findOnPath("nats-server");
  const version = onPath === undefined ? undefined : versionOf(onPath, versionPattern);
  return version !== undefined && isAtLeast(version, versionLeast);
}

export async function fetchNatsServer(runner) {
  await fetchPackage(
    {
      name: "nats-server",
      dir: natsDir,
      // Debian 12 has 2.9, so Debian's next release is asked; Ubuntu's mirrors have Ubuntu's suites only.
      suites: ({ isUbuntu, codename }) => (isUbuntu ? [codename, "devel"] : ["trixie", "stable"]),
      keep: (unpacked) => keep(join(unpacked, "usr", "sbin", "nats-server")),
      notDebian: "no nats-server of 2.10 or newer was found",
      waysToInstall,
    },
    runner,
  );
}

function keep(binary) {
  const version = versionOf(binary, versionPattern);
  if (version === undefined) return "its nats-server does not run on this host";
  if (!isAtLeast(version, versionLeast)) return `it has nats-server ${version.join(".")}, 2.10 or newer is needed`;
  const target = join(natsDir, version.join("."));
  rmSync(target, { recursive: true, force: true });
  renameSync(dirname(binary), target);
  return undefined;
}

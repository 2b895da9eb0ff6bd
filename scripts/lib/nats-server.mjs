// Sees to a nats-server of 2.10 or newer: the one named, the one on PATH, the one fetched before, else the package of
// the distribution, from the mirror the host itself uses, without root and without installing it. Signatures are
// verified by the host's own keyring.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pickMainArchive, readAptSources } from "./apt-sources.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir, isAtLeast, SetupError, versionOf } from "./project.mjs";

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
  const release = osRelease();
  const family = [release.ID, ...(release.ID_LIKE ?? "").split(" ")];
  const isDebianLike = family.includes("debian") || family.includes("ubuntu");
  if (!isDebianLike || findOnPath("apt-get") === undefined || findOnPath("dpkg-deb") === undefined) {
    throw new SetupError(`no nats-server of 2.10 or newer was found\n${waysToInstall}`);
  }
  for (const name of listOf(natsDir)) {
    if (name.startsWith(".fetch-")) rmSync(join(natsDir, name), { recursive: true, force: true });
  }
  const faults = [];
  for (const source of sourcesToTry(release, family)) {
    announce(`fetching nats-server from ${release.NAME ?? "the distribution"} (${source.suite})`);
    const fault = await fetchFrom(source, runner);
    if (fault === undefined) return;
    faults.push(`${source.suite}: ${fault}`);
  }
  throw new SetupError(`nats-server could not be fetched\n${faults.join("\n")}\n${waysToInstall}`);
}

function sourcesToTry(release, family) {
  const isUbuntu = family.includes("ubuntu");
  const codename = (isUbuntu ? release.UBUNTU_CODENAME : undefined) ?? release.VERSION_CODENAME ?? "stable";
  const archive = pickMainArchive(readAptSources(), codename);
  if (archive === undefined) throw new SetupError(`the host's apt sources name no main archive\n${waysToInstall}`);
  // Debian 12 has 2.9, so Debian's next release is asked; Ubuntu's mirrors have Ubuntu's suites only.
  const suites = isUbuntu ? [codename, "devel"] : ["trixie", "stable"];
  const keyrings = isUbuntu
    ? ["/usr/share/keyrings/ubuntu-archive-keyring.gpg"]
    : ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];
  const keyring = keyrings.find((file) => existsSync(file)) ?? archive.signedBy;
  return suites.map((suite) => ({ suite, archive, keyring, components: isUbuntu ? "main universe" : "main" }));
}

/** Answers what went wrong, or undefined. Nothing is left behind but a whole, tried nats-server. */
async function fetchFrom(source, runner) {
  const work = join(natsDir, `.fetch-${process.pid}`);
  const env = { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" };
  const run = (program, ...args) => runner.run(program, args, { cwd: work, env, timeoutMs: 10 * 60_000 });
  try {
    for (const folder of ["parts", "lists/partial", "cache/archives/partial", "unpacked"]) {
      mkdirSync(join(work, folder), { recursive: true });
    }
    const architecture = (await run("dpkg", "--print-architecture")).said.trim();
    writeFileSync(join(work, "parts", "penstock.sources"), sourcesText(source, architecture));
    writeFileSync(join(work, "apt.conf"), aptConfText(work));
    const apt = (...args) => run("apt-get", "-q", "-c", join(work, "apt.conf"), ...args);
    const updated = await apt("update");
    // apt-get update calls a suite it could not reach a warning; the download then finds nothing.
    const downloaded = updated.ok ? await apt("download", "nats-server") : updated;
    const packageFile = listOf(work).find((name) => name.endsWith(".deb"));
    if (!downloaded.ok || packageFile === undefined) return faultOf(updated.said + downloaded.said);
    const unpacked = await run("dpkg-deb", "-x", packageFile, "unpacked");
    if (!unpacked.ok) return faultOf(unpacked.said);
    return keep(join(work, "unpacked", "usr", "sbin", "nats-server"));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
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

function sourcesText({ suite, archive, keyring, components }, architecture) {
  const fields = ["Types: deb", `URIs: ${archive.uri}`, `Suites: ${suite}`, `Components: ${components}`];
  if (keyring !== undefined) fields.push(`Signed-By: ${keyring}`);
  if (archive.checkValidUntil !== undefined) fields.push(`Check-Valid-Until: ${archive.checkValidUntil}`);
  return `${[...fields, `Architectures: ${architecture}`].join("\n")}\n`;
}

/** Folders of our own for all that apt writes. The host's proxies and credentials stay in force; its pins and hooks do not. */
function aptConfText(work) {
  const lines = [
    "#clear APT::Update::Pre-Invoke;",
    "#clear APT::Update::Post-Invoke;",
    "#clear APT::Update::Post-Invoke-Success;",
    'Dir::Etc::SourceList "/dev/null";',
    `Dir::Etc::SourceParts "${join(work, "parts")}";`,
    'Dir::Etc::Preferences "/dev/null";',
    'Dir::Etc::PreferencesParts "/dev/null";',
    `Dir::State::Lists "${join(work, "lists")}";`,
    `Dir::Cache "${join(work, "cache")}";`,
    'Debug::NoLocking "1";',
    'APT::Default-Release "";',
    'APT::Get::AllowUnauthenticated "false";',
    'Acquire::AllowInsecureRepositories "false";',
    'Acquire::Languages "none";',
    'Acquire::Retries "2";',
  ];
  // Root's apt downloads as the user _apt, who may not enter a checkout under root's home.
  if (process.getuid?.() === 0) lines.push('APT::Sandbox::User "root";');
  return `${lines.join("\n")}\n`;
}

function faultOf(said) {
  const lines = said.split("\n").filter((line) => /^(E|W|Err|dpkg)/.test(line));
  const keyHint = said.includes("NO_PUBKEY")
    ? "\n  the host's keyring does not know this release yet: update the package debian-archive-keyring"
    : "";
  return `${lines.slice(0, 6).join("\n  ") || "the package was not found"}${keyHint}`;
}

function osRelease() {
  const fields = {};
  try {
    for (const line of readFileSync("/etc/os-release", "utf8").split("\n")) {
      const match = /^([A-Z_]+)=("?)(.*)\2$/.exec(line);
      if (match !== null) fields[match[1]] = match[3];
    }
  } catch {
    // Not a Linux with an os-release file.
  }
  return fields;
}

function listOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

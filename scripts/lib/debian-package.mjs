// Fetches a package of the host's distribution, Debian or Ubuntu, without root and without
// installing it: from the mirror the host itself uses, verified by the host's own keyring. What of
// it is kept, and where, is the caller's to say.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pickMainArchive, readAptSources } from "./apt-sources.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, SetupError } from "./project.mjs";

/**
 * Tries the suites in turn until one has a package that will do. Throws a SetupError that says what
 * was wrong with each.
 *
 * - `name`: of the package
 * - `also`: more packages, which go with it where the suite has them; or what tells their names,
 *   given a function that runs apt-get or apt-cache and answers as the runner does
 * - `dir`: where the work is done; nothing is left there but what `keep` puts there
 * - `suites`: of `{ isUbuntu, codename }`, the suites to ask
 * - `keep`: gets the folder with the unpacked package, takes what it wants; answers what is wrong
 *   with it, or undefined
 * - `notDebian`: what to say on another distribution
 * - `waysToInstall`: what else the user can do
 * - `isOptional`: there is something to go on with, so an archive that does not answer is not
 *   waited for long
 */
export async function fetchPackage(wanted, runner) {
  const { name, dir, waysToInstall } = wanted;
  const release = osRelease();
  const family = familyOf(release);
  if (cannotFetch()) throw new SetupError(`${wanted.notDebian}\n${waysToInstall}`);
  for (const left of listOf(dir)) {
    if (left.startsWith(".fetch-")) rmSync(join(dir, left), { recursive: true, force: true });
  }
  const faults = [];
  for (const source of sourcesToTry(release, family, wanted)) {
    announce(`fetching ${name} from ${release.NAME ?? "the distribution"} (${source.suite})`);
    const fault = await fetchFrom(source, wanted, runner);
    if (fault === undefined) return;
    faults.push(`${source.suite}: ${fault}`);
  }
  throw new SetupError(`${name} could not be fetched\n${faults.join("\n")}\n${waysToInstall}`);
}

/** True where packages do not come by apt, which is known before anything is tried. */
export function cannotFetch() {
  const family = familyOf(osRelease());
  const isDebianLike = family.includes("debian") || family.includes("ubuntu");
  return (
    !isDebianLike || findOnPath("apt-get") === undefined || findOnPath("dpkg-deb") === undefined
  );
}

function familyOf(release) {
  return [release.ID, ...(release.ID_LIKE ?? "").split(" ")];
}

function sourcesToTry(release, family, { suites, waysToInstall }) {
  const isUbuntu = family.includes("ubuntu");
  const codename =
    (isUbuntu ? release.UBUNTU_CODENAME : undefined) ?? release.VERSION_CODENAME ?? "stable";
  const archive = pickMainArchive(readAptSources(), codename);
  if (archive === undefined)
    throw new SetupError(`the host's apt sources name no main archive\n${waysToInstall}`);
  const keyrings = isUbuntu
    ? ["/usr/share/keyrings/ubuntu-archive-keyring.gpg"]
    : [
        "/usr/share/keyrings/debian-archive-keyring.gpg",
        "/usr/share/keyrings/debian-archive-keyring.pgp",
      ];
  const keyring = keyrings.find((file) => existsSync(file)) ?? archive.signedBy;
  const components = isUbuntu ? "main universe" : "main";
  return suites({ isUbuntu, codename }).map((suite) => ({ suite, archive, keyring, components }));
}

const removalTriesMax = 5;

/** Answers what went wrong, or undefined. Nothing is left behind but what was kept. */
async function fetchFrom(source, { name, also = [], dir, keep, isOptional = false }, runner) {
  const work = join(dir, `.fetch-${process.pid}`);
  const env = { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" };
  const run = (program, ...args) =>
    runner.run(program, args, {
      cwd: work,
      env,
      timeoutMs: isOptional ? 60_000 : 10 * 60_000,
      // Installing and building the rest takes longer.
      unhurried: true,
    });
  try {
    for (const folder of ["parts", "lists/partial", "cache/archives/partial", "unpacked"]) {
      mkdirSync(join(work, folder), { recursive: true });
    }
    const architecture = (await run("dpkg", "--print-architecture")).said.trim();
    writeFileSync(join(work, "parts", "penstock.sources"), sourcesText(source, architecture));
    writeFileSync(join(work, "apt.conf"), aptConfText(work, isOptional));
    const ask = (program, ...args) => run(program, "-q", "-c", join(work, "apt.conf"), ...args);
    const apt = (...args) => ask("apt-get", ...args);
    const updated = await apt("update");
    // apt-get update calls a suite it could not reach a warning; the download then finds nothing.
    const downloaded = updated.ok ? await apt("download", name) : updated;
    if (downloaded.ok) {
      const others = typeof also === "function" ? await also(ask) : also;
      for (const more of others) await apt("download", more);
    }
    const packageFiles = listOf(work).filter((file) => file.endsWith(".deb"));
    if (!downloaded.ok || packageFiles.length === 0) return faultOf(updated.said + downloaded.said);
    for (const packageFile of packageFiles) {
      const unpacked = await run("dpkg-deb", "-x", packageFile, "unpacked");
      if (!unpacked.ok) return faultOf(unpacked.said);
    }
    return keep(join(work, "unpacked"));
  } finally {
    remove(work);
  }
}

/**
 * What apt still has its hands in may change while it is deleted, and Node then gives up. What
 * stays is in the way of nobody.
 */
function remove(folder) {
  for (let tries = 0; tries < removalTriesMax; tries++) {
    try {
      rmSync(folder, { recursive: true, force: true });
      return;
    } catch {
      // Once more.
    }
  }
}

function sourcesText({ suite, archive, keyring, components }, architecture) {
  const fields = [
    "Types: deb",
    `URIs: ${archive.uri}`,
    `Suites: ${suite}`,
    `Components: ${components}`,
    // No translations, and none of what the host's desktop tools want to know about packages.
    "Targets: Packages",
  ];
  if (keyring !== undefined) fields.push(`Signed-By: ${keyring}`);
  if (archive.checkValidUntil !== undefined)
    fields.push(`Check-Valid-Until: ${archive.checkValidUntil}`);
  return `${[...fields, `Architectures: ${architecture}`].join("\n")}\n`;
}

/**
 * Folders of our own for all that apt writes. The host's proxies and credentials stay in force; its
 * pins and hooks do not.
 */
function aptConfText(work, isOptional) {
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
    // Hosts made for containers keep the list packed and read it anew in each command: that saves
    // room, which here is given back at once, and takes twice the time.
    'Acquire::GzipIndexes "false";',
    'Dir::Cache::pkgcache "pkgcache.bin";',
    'Dir::Cache::srcpkgcache "srcpkgcache.bin";',
    'Debug::NoLocking "1";',
    'APT::Default-Release "";',
    'APT::Get::AllowUnauthenticated "false";',
    'Acquire::AllowInsecureRepositories "false";',
    'Acquire::Languages "none";',
    `Acquire::Retries "${isOptional ? 0 : 1}";`,
    'Acquire::http::Timeout "10";',
    'Acquire::https::Timeout "10";',
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

/** The names in a folder; none when there is no such folder. */
export function listOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

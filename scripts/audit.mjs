// Reports known vulnerabilities of the packages in both lock files. Exits with 1 for a high or
// critical vulnerability or if npm fails, but not if the registry cannot be reached.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { hostEnvironment, root } from "./lib/project.mjs";

const failing = new Set(["high", "critical"]);
const folders = { "": root, "DuckDB: ": join(root, "scripts", "duckdb") };

function audit(folder) {
  const args = ["audit", "--json", "--fetch-retries=1", "--fetch-timeout=20000"];
  const { stdout, error } = spawnSync("npm", args, {
    cwd: folder,
    env: hostEnvironment(),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: 60_000,
    killSignal: "SIGKILL",
  });
  if (error?.code === "ETIMEDOUT") return [false, "not checked: the registry did not answer"];
  if (error !== undefined) return [true, `failed: npm does not run: ${error.message}`];
  const answer = parsed(stdout);
  if (answer?.vulnerabilities !== undefined) return judged(Object.values(answer.vulnerabilities));
  // npm's own errors have a code. The registry's errors have only a message.
  const isOfRegistry = typeof answer?.message === "string" && answer.error?.code === undefined;
  const why = (answer?.message ?? stdout).replaceAll(/https?:\/\/\S+/g, "…").slice(0, 300);
  return [!isOfRegistry, `${isOfRegistry ? "not checked" : "failed"}: ${why}`];
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function judged(found) {
  const serious = found.filter(({ severity }) => failing.has(severity));
  if (serious.length === 0)
    return [false, `no high or critical vulnerability is known, ${found.length} lesser ones are`];
  const lines = serious.map(({ name, severity, range, via, fixAvailable }) => {
    const causes = via.map((cause) =>
      typeof cause === "string" ? `through ${cause}` : cause.title,
    );
    const fix = fixAvailable === false ? "no fix yet" : "npm audit fix shows a fix";
    return `${severity}: ${name} ${range}: ${[...new Set(causes)].join("; ")} (${fix})`;
  });
  return [
    true,
    [`failed: ${serious.length} high or critical vulnerabilities`, ...lines].join("\n"),
  ];
}

for (const [name, folder] of Object.entries(folders)) {
  const [hasFailed, text] = audit(folder);
  process.stdout.write(`audit: ${name}${text}\n`);
  if (hasFailed) process.exitCode = 1;
}

// Sees to a Python that has PostHog's client and OpenTelemetry's exporter, which only their tests need: a virtual
// environment of the host's python3, filled once by its pip. A host that can have none goes
// without; the test says so.

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir } from "./project.mjs";

const version = "7.91.1";
/** OpenTelemetry's exporter, which the test of trace requests runs in the same environment. */
const exporter = "opentelemetry-exporter-otlp-proto-http";
const exporterVersion = "1.45.2";
const installMs = 120_000;
const hasIt = `import sys, importlib.metadata as m; sys.exit((m.version("posthog"), m.version("${exporter}")) != ("${version}", "${exporterVersion}"))`;

/** The client's version, and its Python or why there is none. */
export async function pythonClient(runner) {
  const dir = join(cacheDir, "python-client", version);
  const python = join(dir, "bin", "python");
  if (hasClient(python)) return { version, exporterVersion, python };
  const host = findOnPath("python3");
  if (host === undefined) return { version, exporterVersion, why: "there is no python3 on PATH" };
  announce(`the test of the Python client runs posthog ${version}: some MB are fetched, once`);
  rmSync(dir, { recursive: true, force: true });
  const steps = [
    [host, "-m", "venv", dir],
    [
      python,
      "-m",
      "pip",
      "install",
      "--quiet",
      "--no-input",
      "--disable-pip-version-check",
      `posthog==${version}`,
      `${exporter}==${exporterVersion}`,
    ],
  ];
  for (const [program, ...args] of steps) {
    const { ok, said } = await runner.run(program, args, { timeoutMs: installMs });
    if (ok) continue;
    rmSync(dir, { recursive: true, force: true });
    return {
      version,
      exporterVersion,
      why: `${args.slice(0, 3).join(" ")}: ${said.trim().split("\n").at(-1)}`,
    };
  }
  return hasClient(python)
    ? { version, exporterVersion, python }
    : { version, exporterVersion, why: "what was installed does not run" };
}

function hasClient(python) {
  return spawnSync(python, ["-c", hasIt], { stdio: "ignore" }).status === 0;
}

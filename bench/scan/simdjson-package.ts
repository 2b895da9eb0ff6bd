// The npm package `simdjson`, for comparison. The first run of the bench fetches it, because its
// installation compiles it. If it is absent, the result has a remark.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { workFolder } from "../harness/nats.ts";

const version = "0.9.2";
const folder = join(workFolder, `simdjson-${version}`);
const buildMsMax = 240_000;

/** Returns the reason if the package is not available. */
export function installSimdjson(): string | undefined {
  if (existsSync(builtAddon())) return undefined;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  // The headers of the pinned Node, so that node-gyp downloads none.
  const nodedir = resolve(dirname(process.execPath), "..");
  try {
    execFileSync(
      "npm",
      ["install", `simdjson@${version}`, "--no-audit", "--no-fund", "--no-save"],
      {
        cwd: folder,
        env: {
          ...process.env,
          ...(existsSync(join(nodedir, "include")) ? { npm_config_nodedir: nodedir } : {}),
        },
        stdio: "pipe",
        timeout: buildMsMax,
      },
    );
  } catch (error) {
    return `the npm package simdjson ${version} does not install here: ${(error as Error).message.split("\n")[0]}`;
  }
  return existsSync(builtAddon())
    ? undefined
    : `the npm package simdjson ${version} was not built by its installation`;
}

function builtAddon(): string {
  return join(folder, "node_modules", "simdjson", "build", "Release", "simdjson.node");
}

export function loadSimdjson(): { parse(json: string): unknown } {
  return createRequire(join(folder, "package.json"))("simdjson") as {
    parse(json: string): unknown;
  };
}

import { execFileSync, spawn } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { execPath } from "node:process";
import { compareVersions, parseVersion, type Version } from "../base/forms.ts";
import { EmbeddedError } from "./data-lock.ts";

interface NatsServerSearch {
  readonly named: string | undefined;
  readonly path: string | undefined;
}

export interface NatsServerBinary {
  readonly file: string;
  readonly version: string;
}

/** Older versions have no `sync_interval`, so acknowledged events may not be on disk. */
const versionLeast: Version = [2, 10, 0];
const root = resolve(import.meta.dirname, "../../..");
const fetchedDir = join(root, ".cache", "nats-server");
const fetchScript = join(root, "scripts", "nats-server.mjs");

export async function findOrFetchNatsServer(search: NatsServerSearch): Promise<NatsServerBinary> {
  try {
    return findNatsServer(search);
  } catch (error) {
    if (search.named !== undefined || !existsSync(fetchScript)) throw error;
    await new Promise((resolve) => {
      spawn(execPath, [fetchScript], { stdio: ["ignore", 2, 2] })
        .once("error", resolve)
        .once("close", resolve);
    });
    return findNatsServer(search);
  }
}

/**
 * Returns the configured nats-server. If none is configured, returns a nats-server on PATH that is
 * new enough, or else the newest download of `npm run setup`. Throws an EmbeddedError if there is
 * none.
 */
export function findNatsServer({ named, path }: NatsServerSearch): NatsServerBinary {
  if (named !== undefined) {
    const version = versionOf(named);
    if (version === undefined)
      throw new EmbeddedError(`cannot embed nats-server: ${named} does not run`);
    if (!isNewEnough(version))
      throw new EmbeddedError(
        `cannot embed nats-server: ${named} is version ${version.join(".")}, but 2.10 or newer is required, because older versions acknowledge events before they are on disk`,
      );
    return { file: named, version: version.join(".") };
  }
  const skipped: string[] = [];
  for (const file of [...onPath(path ?? ""), ...fetched()]) {
    const version = versionOf(file);
    if (version !== undefined && isNewEnough(version)) return { file, version: version.join(".") };
    skipped.push(`${file} (${version?.join(".") ?? "does not run"})`);
  }
  const seen = skipped.length === 0 ? "" : `; skipped: ${skipped.join(", ")}`;
  throw new EmbeddedError(
    `cannot embed nats-server: found no version 2.10 or newer${seen}. Install nats-server, or set PENSTOCK_NATS_SERVER to a nats-server binary, or use a running NATS: PENSTOCK_NATS_URL=nats://host:4222`,
  );
}

function onPath(path: string): string[] {
  const files = path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, "nats-server"));
  return files.filter(isExecutable).slice(0, 1);
}

function fetched(): string[] {
  try {
    return readdirSync(fetchedDir)
      .map((name) => ({ file: join(fetchedDir, name, "nats-server"), version: parseVersion(name) }))
      .filter(({ file, version }) => version !== undefined && isExecutable(file))
      .sort((left, right) => compareVersions(right.version!, left.version!))
      .map(({ file }) => file);
  } catch {
    return [];
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function versionOf(file: string): Version | undefined {
  try {
    return parseVersion(
      execFileSync(file, ["--version"], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        timeout: 10_000,
      }),
    );
  } catch {
    return undefined;
  }
}

function isNewEnough(version: Version): boolean {
  return compareVersions(version, versionLeast) >= 0;
}

// Locks a data folder, so that only one gateway uses it. When the process ends, the kernel releases
// the lock.

import {
  accessSync,
  constants,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type FileLock, makeFolder, takeFileLock } from "../base/files.ts";

export interface DataLock {
  note(answers: Answers): void;
  release(): void;
}

export interface Answers {
  readonly url: string;
  readonly port: number;
  readonly adminPort: number;
  readonly effectsPort?: number | undefined;
}

interface Holder extends Partial<Answers> {
  readonly pid: number;
}

/** An expected failure at start. The message states the cause and the fix. */
export class EmbeddedError extends Error {}

/** The lock of a process that was just killed may exist for another moment. */
const tries = 10;
const retryMs = 50;

/** Locks the folder. If it is in use, throws an EmbeddedError that names the process. */
export async function lockDataDir(dataDir: string, pid: number): Promise<DataLock> {
  const lock = await take(dataDir);
  const file = holderFile(dataDir);
  const write = (holder: Holder): void => {
    writeFileSync(`${file}.next`, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
    renameSync(`${file}.next`, file);
  };
  try {
    write({ pid });
  } catch (error) {
    lock.close();
    throw new EmbeddedError(folderFault(dataDir, error));
  }
  return {
    note: (answers) => write({ pid, ...answers }),
    release() {
      rmSync(file, { force: true });
      lock.close();
    },
  };
}

export function readHolder(dataDir: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(holderFile(dataDir), "utf8")) as Holder;
  } catch {
    return undefined;
  }
}

async function take(dataDir: string): Promise<FileLock> {
  try {
    makeFolder(join(dataDir, "nats"));
    for (let count = 0; count < tries; count++) {
      const lock = takeFileLock(join(dataDir, "penstock.lock"));
      if (lock !== "busy") return lock;
      await delay(retryMs);
    }
  } catch (error) {
    throw new EmbeddedError(folderFault(dataDir, error));
  }
  const { pid, url } = readHolder(dataDir) ?? {};
  const who = pid === undefined ? "" : `, as process ${pid}`;
  const where = url === undefined ? "" : `, at ${url}`;
  throw new EmbeddedError(
    `cannot start on ${dataDir}: Penstock already runs on this folder${who}${where}. Stop it first, or set PENSTOCK_DATA_DIR to another folder`,
  );
}

function holderFile(dataDir: string): string {
  return join(dataDir, "penstock.json");
}

const otherFolder = "set PENSTOCK_DATA_DIR (--data-dir) to another folder";
const writableFix = `let this user write to it, or ${otherFolder}`;

/** An unusable folder: why, and what to do. */
interface FolderFault {
  readonly why: string;
  readonly fix: string;
}

export function folderFault(dataDir: string, error: unknown): string {
  const found = unusableFolder(dataDir);
  const { code, message } = error as NodeJS.ErrnoException;
  const { why, fix } = found ?? {
    why: `the folder is not writable (${code ?? message})`,
    fix: writableFix,
  };
  return `cannot start on ${dataDir}: ${why}: ${fix}`;
}

/**
 * Returns the reason why the user cannot write to the folder, or undefined if they can. If the
 * folder does not exist, checks its nearest existing parent.
 */
export function unusableFolder(dataDir: string): FolderFault | undefined {
  const folder = resolve(dataDir);
  const inside = ["nats", "jetstream"]
    .map((name) => join(folder, name))
    .filter((path) => kindOf(path) !== "nothing");
  for (const path of [...inside, nearestExisting(folder)]) {
    const what = path === folder ? "it" : path;
    if (kindOf(path) === "file")
      return { why: `${what} is a file, not a folder`, fix: otherFolder };
    const code = accessFault(path);
    if (code === "EROFS")
      return { why: `${what} is on a file system that is mounted read-only`, fix: otherFolder };
    if (code !== undefined)
      return {
        why: `this user may not write to ${what}${ownerOf(path)} (${code})`,
        fix: writableFix,
      };
  }
  return undefined;
}

export function nearestExisting(path: string): string {
  const above = dirname(path);
  return kindOf(path) !== "nothing" || above === path ? path : nearestExisting(above);
}

function kindOf(path: string): "folder" | "file" | "nothing" {
  try {
    return statSync(path).isDirectory() ? "folder" : "file";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? "nothing" : "folder";
  }
}

function ownerOf(path: string): string {
  try {
    return `, which belongs to uid ${statSync(path).uid}`;
  } catch {
    return "";
  }
}

function accessFault(path: string): string | undefined {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown";
  }
}

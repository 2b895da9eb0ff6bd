// One gateway at a time on a data folder. Two things hold that: locks of the kernel, which every
// container of the machine sees and which a nats-server that outlives its gateway keeps; and a
// claim of each process, which says who it is and decides where the kernel cannot. The locks are on
// the folder itself, which nobody deletes in passing, and on a file in it, because network file
// systems keep those of a folder to one machine. Every process that wants the folder lays down a
// claim of its own, then looks for others: of two, at least one sees the other and steps back. The
// claims of processes that died are removed by whoever comes next.

import { randomBytes, randomInt } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { folderFault } from "./folder-fault.ts";
import {
  inodeAt,
  type KernelLock,
  type KernelLockOutcome,
  takeFolderLock,
  takeKernelLock,
} from "./kernel-lock.ts";
import { makeFolder } from "./make-folder.ts";
import {
  identify,
  isRunning,
  type ProcessHost,
  type ProcessIdentity,
  placeOfPids,
} from "./process-identity.ts";

export interface DataLock {
  /**
   * The kernel's locks; none where nothing on this host can take one. Who inherits them holds the
   * folder too.
   */
  readonly fds: readonly number[];
  release(): void;
}

/** An expected failure to start: the message is all that the user has to see. */
export class EmbeddedError extends Error {}

interface Claim extends ProcessIdentity {
  readonly held: boolean;
  /** Where its pid means something; see placeOfPids. */
  readonly place?: string;
  /**
   * The inodes that it has the kernel's locks on; none where it can take none, undefined before it
   * knows.
   */
  readonly locks?: readonly string[];
  /** The inode of the folder: a claim that came along with a copy is about another one. */
  readonly folder?: string | undefined;
}

interface FoundClaim extends Claim {
  readonly file: string;
}

const claimPattern = /^owner-.*\.json$/;
const triesMax = 20;
const retryMsMin = 20;
const retryMsMax = 120;
/** An owner that was just killed may be seen a moment longer. */
const heldTriesMax = 8;
/** The nats-server of a gateway that was killed ends by its leash, within ten seconds. */
const kernelWaitMs = 12_000;
const kernelRetryMs = 150;

/**
 * Throws an EmbeddedError that names the owner when the folder is in use; nothing is changed then.
 */
export async function lockDataDir(
  dataDir: string,
  host: ProcessHost,
  signal?: AbortSignal,
): Promise<DataLock> {
  const folder = join(dataDir, "nats");
  try {
    makeFolder(folder);
  } catch (error) {
    throw new EmbeddedError(folderFault(dataDir, error));
  }
  const own = join(folder, `owner-${host.pid}-${randomBytes(4).toString("hex")}.json`);
  const self = await layClaim({ dataDir, folder, own, host });
  let kernel: readonly KernelLock[] = [];
  const release = (): void => {
    rmSync(own, { force: true });
    for (const lock of kernel) lock.release();
  };
  try {
    kernel = await kernelLocks(dataDir, folder, signal);
    const inodes = kernel.map(({ inode }) => inode);
    // Before others' claims are looked at: of two that do so at once, at least one has to see what
    // the other has.
    writeClaim(own, { ...self, held: true, locks: inodes });
    for (const claim of claimsElsewhere(folder)) {
      const had =
        claim.folder === undefined || claim.folder === self.folder
          ? (claim.locks ?? inodes)
          : inodes;
      // Only whoever has the very lock that the other had knows that it is gone: a lock file that
      // was deleted and made anew says nothing.
      if (
        kernel.length > 0 &&
        (had.some((inode) => inodes.includes(inode)) || !isOfThisBoot(claim))
      ) {
        rmSync(claim.file, { force: true });
      } else if (isOfThisBoot(claim))
        throw new EmbeddedError(cannotTell(dataDir, claim, kernel.length > 0));
    }
    return { fds: kernel.map(({ fd }) => fd), release };
  } catch (error) {
    release();
    throw error;
  }
}

interface ClaimQuestion {
  readonly dataDir: string;
  readonly folder: string;
  readonly own: string;
  readonly host: ProcessHost;
}

async function layClaim({
  dataDir,
  folder,
  own,
  host,
}: ClaimQuestion): Promise<Omit<Claim, "held">> {
  const self = {
    ...(identify(host.pid, host) ?? { pid: host.pid, startedAt: "" }),
    place: placeOfPids(),
    folder: inodeAt(dataDir),
  };
  let other: Claim | undefined;
  for (let tries = 0; tries < triesMax; tries++) {
    try {
      writeClaim(own, { ...self, held: false });
    } catch (error) {
      throw new EmbeddedError(folderFault(dataDir, error));
    }
    other = liveClaim(folder, own, host);
    if (other === undefined) {
      writeClaim(own, { ...self, held: true });
      return self;
    }
    rmSync(own, { force: true });
    if (other.held && tries >= heldTriesMax) break;
    await delay(randomInt(retryMsMin, retryMsMax));
  }
  throw new EmbeddedError(
    `start on ${dataDir}: the folder is in use by process ${other?.pid}: end that first, or name another PENSTOCK_DATA_DIR`,
  );
}

/** None where this host cannot take any. */
async function kernelLocks(
  dataDir: string,
  folder: string,
  signal?: AbortSignal,
): Promise<readonly KernelLock[]> {
  const deadline = performance.now() + kernelWaitMs;
  for (;;) {
    const taken = takeLocks(dataDir);
    if (taken !== "busy") return taken;
    if (performance.now() > deadline) {
      const [claim] = claimsElsewhere(folder);
      const who =
        claim === undefined
          ? "the nats-server of an earlier run, or a process that is not seen from here"
          : `process ${claim.pid} of another container or pid namespace`;
      throw new EmbeddedError(
        `start on ${dataDir}: the folder is in use by ${who}: end that first, or name another PENSTOCK_DATA_DIR. Two nats-servers on one store destroy what was acknowledged`,
      );
    }
    await delay(kernelRetryMs, undefined, { signal });
  }
}

/** All that can be had, or `busy` and none. */
function takeLocks(dataDir: string): readonly KernelLock[] | "busy" {
  let folder: KernelLockOutcome = "unknown";
  let file: KernelLockOutcome = "unknown";
  try {
    folder = takeFolderLock(dataDir);
    if (folder === "busy") return "busy";
    file = takeKernelLock(join(dataDir, "penstock.lock"));
  } catch (error) {
    if (typeof folder === "object") folder.release();
    throw new EmbeddedError(folderFault(dataDir, error));
  }
  if (file === "busy" && folder !== "unknown") folder.release();
  return file === "busy" ? "busy" : [folder, file].filter((lock) => lock !== "unknown");
}

function cannotTell(dataDir: string, { pid, file }: FoundClaim, hasLock: boolean): string {
  const [why, fix] = hasLock
    ? ["because it has no lock of the kernel on what is there now", "end it"]
    : ["because neither flock, python3 nor perl is here", "install one of them"];
  return `start on ${dataDir}: process ${pid} of another container or pid namespace has claimed the folder, and whether it still runs cannot be told, ${why}: ${fix}, or delete ${file} when it surely has ended`;
}

function writeClaim(file: string, claim: Claim): void {
  // The name of the file in the making does not match the pattern: a claim is seen whole or not at
  // all.
  const next = `${file}.next`;
  writeFileSync(next, JSON.stringify(claim), { mode: 0o600 });
  renameSync(next, file);
}

function liveClaim(folder: string, own: string, host: ProcessHost): Claim | undefined {
  for (const claim of claims(folder)) {
    // What pids of elsewhere mean, and whether they are alive, is not to be seen from here.
    if (claim.file === own || isElsewhere(claim)) continue;
    if (isRunning(claim, host)) return claim;
    // Names are never used twice, so this removes the dead process's claim and no other.
    rmSync(claim.file, { force: true });
  }
  return undefined;
}

function claims(folder: string): FoundClaim[] {
  const files = readdirSync(folder).filter((name) => claimPattern.test(name));
  return files.flatMap((name) => {
    const file = join(folder, name);
    const claim = readClaim(file);
    return claim === undefined ? [] : [{ ...claim, file }];
  });
}

function claimsElsewhere(folder: string): FoundClaim[] {
  return claims(folder).filter(isElsewhere);
}

function isElsewhere({ place }: Claim): boolean {
  return place !== undefined && place !== placeOfPids();
}

/**
 * The claim of an earlier boot is of a machine that was switched off, or of another one: not of a
 * container beside us.
 */
function isOfThisBoot({ place = "" }: Claim): boolean {
  return place.split(" ")[0] === placeOfPids().split(" ")[0];
}

function readClaim(file: string): Claim | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Claim;
  } catch {
    return undefined;
  }
}

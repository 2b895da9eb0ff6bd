// Keeps a data folder to one gateway, by two means. The kernel's locks: every container of the
// machine sees them, and a nats-server that outlives its gateway keeps them. They are on the
// folder, which nobody deletes in passing, and on a file in it, because network file systems keep a
// folder's locks to one machine. And claims, which decide where the kernel cannot: each process
// writes one that says who it is, then looks for others, so of two at least one sees the other and
// steps back. The next process to come removes the claims of processes that died.

import { randomBytes, randomInt } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeFolder } from "../base/make-folder.ts";
import { folderFault } from "./folder-fault.ts";
import {
  inodeAt,
  type KernelLock,
  type KernelLockOutcome,
  takeFolderLock,
  takeKernelLock,
} from "./kernel-lock.ts";
import {
  identify,
  isRunning,
  type ProcessHost,
  type ProcessIdentity,
  placeOfPids,
} from "./process-identity.ts";

export interface DataLock {
  /**
   * The descriptors of the kernel's locks; none where nothing on this host can take one. A process
   * that inherits them holds the folder too.
   */
  readonly fds: readonly number[];
  release(): void;
}

/** An expected failure to start: the message is all that the user has to see. */
export class EmbeddedError extends Error {}

interface Claim extends ProcessIdentity {
  readonly held: boolean;
  /** The boot and pid namespace in which the claim's pid means something; see placeOfPids. */
  readonly place?: string;
  /**
   * The inodes that the claiming process has the kernel's locks on; none where it can take none,
   * undefined before it has tried.
   */
  readonly locks?: readonly string[];
  /**
   * The inode of the data folder. In a copy of the folder, the claims copied along name the inode
   * of the original.
   */
  readonly folder?: string | undefined;
}

interface FoundClaim extends Claim {
  readonly file: string;
}

const claimPattern = /^owner-.*\.json$/;
const triesMax = 20;
const retryMsMin = 20;
const retryMsMax = 120;
/**
 * Tries while another's claim is held: an owner that was just killed may be seen a moment longer.
 */
const heldTriesMax = 8;
/**
 * How long busy locks are waited for: the nats-server of a gateway that was killed keeps them until
 * its leash ends it, within ten seconds.
 */
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
    // Our locks are written into our claim before the claims of others are read. Of two processes
    // that do so at once, at least one then sees what the other has.
    writeClaim(own, { ...self, held: true, locks: inodes });
    for (const claim of claimsElsewhere(folder)) {
      const had =
        claim.folder === undefined || claim.folder === self.folder
          ? (claim.locks ?? inodes)
          : inodes;
      // Who holds the very lock that the other process had knows that the other is gone. A lock on
      // a file that was deleted and made anew proves nothing.
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

/** Waits while another process has the locks. None where this host cannot take any. */
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

/**
 * Takes every lock that this host can take; `busy`, and none taken, when another process has one.
 */
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
  // The temporary name does not match claimPattern: others see a claim whole or not at all.
  const next = `${file}.next`;
  writeFileSync(next, JSON.stringify(claim), { mode: 0o600 });
  renameSync(next, file);
}

function liveClaim(folder: string, own: string, host: ProcessHost): Claim | undefined {
  for (const claim of claims(folder)) {
    // What a pid of another boot or pid namespace means, and whether it is alive, cannot be seen
    // from here.
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
 * A claim of another boot is from before this machine was switched off, or from another machine,
 * and not from a container beside us.
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

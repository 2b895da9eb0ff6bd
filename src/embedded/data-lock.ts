// One gateway at a time on a data folder. Two things hold that: a lock of the kernel, which every container of the machine sees and
// which a nats-server that outlives its gateway keeps; and a claim of each process, which says who it is and decides where the kernel
// cannot. Every process that wants the folder lays down a claim of its own, then looks for others: of two, at least one sees the
// other and steps back. The claims of processes that died are removed by whoever comes next.

import { randomBytes, randomInt } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { folderFault } from "./folder-fault.ts";
import { type KernelLock, type KernelLockOutcome, takeKernelLock } from "./kernel-lock.ts";
import { identify, isRunning, type ProcessHost, type ProcessIdentity, placeOfPids } from "./process-identity.ts";

export interface DataLock {
  /** The kernel's lock; undefined where nothing on this host can take one. Who inherits it holds the folder too. */
  readonly fd: number | undefined;
  release(): void;
}

/** An expected failure to start: the message is all that the user has to see. */
export class EmbeddedError extends Error {}

interface Claim extends ProcessIdentity {
  readonly held: boolean;
  /** Where its pid means something; see placeOfPids. */
  readonly place?: string;
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

/** Throws an EmbeddedError that names the owner when the folder is in use; nothing is changed then. */
export async function lockDataDir(dataDir: string, host: ProcessHost, signal?: AbortSignal): Promise<DataLock> {
  const folder = join(dataDir, "nats");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new EmbeddedError(folderFault(dataDir, error));
  }
  const own = join(folder, `owner-${host.pid}-${randomBytes(4).toString("hex")}.json`);
  await layClaim({ dataDir, folder, own, host });
  try {
    const kernel = await kernelLock(dataDir, folder, signal);
    const release = (): void => {
      rmSync(own, { force: true });
      kernel?.release();
    };
    for (const claim of claimsElsewhere(folder)) {
      // Whoever has the kernel's lock knows that nobody else has the folder.
      if (kernel !== undefined) rmSync(claim.file, { force: true });
      else if (isOfThisBoot(claim)) throw new EmbeddedError(cannotTell(dataDir, claim));
    }
    return { fd: kernel?.fd, release };
  } catch (error) {
    rmSync(own, { force: true });
    throw error;
  }
}

interface ClaimQuestion {
  readonly dataDir: string;
  readonly folder: string;
  readonly own: string;
  readonly host: ProcessHost;
}

async function layClaim({ dataDir, folder, own, host }: ClaimQuestion): Promise<void> {
  const self = { ...(identify(host.pid, host) ?? { pid: host.pid, startedAt: "" }), place: placeOfPids() };
  let other: Claim | undefined;
  for (let tries = 0; tries < triesMax; tries++) {
    try {
      writeClaim(own, { ...self, held: false });
    } catch (error) {
      throw new EmbeddedError(folderFault(dataDir, error));
    }
    other = liveClaim(folder, own, host);
    if (other === undefined) return writeClaim(own, { ...self, held: true });
    rmSync(own, { force: true });
    if (other.held && tries >= heldTriesMax) break;
    await delay(randomInt(retryMsMin, retryMsMax));
  }
  throw new EmbeddedError(`start on ${dataDir}: the folder is in use by process ${other?.pid}`);
}

/** Undefined where this host cannot take one. */
async function kernelLock(dataDir: string, folder: string, signal?: AbortSignal): Promise<KernelLock | undefined> {
  const deadline = performance.now() + kernelWaitMs;
  for (;;) {
    const outcome = takeLockFile(dataDir);
    if (outcome === "unknown") return undefined;
    if (outcome !== "busy") return outcome;
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

function takeLockFile(dataDir: string): KernelLockOutcome {
  try {
    return takeKernelLock(join(dataDir, "penstock.lock"));
  } catch (error) {
    throw new EmbeddedError(folderFault(dataDir, error));
  }
}

function cannotTell(dataDir: string, { pid, file }: FoundClaim): string {
  return `start on ${dataDir}: process ${pid} of another container or pid namespace has claimed the folder, and whether it still runs cannot be told, because neither flock, python3 nor perl is here: install one of them, or delete ${file} when it surely has ended`;
}

function writeClaim(file: string, claim: Claim): void {
  // The name of the file in the making does not match the pattern: a claim is seen whole or not at all.
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

/** The claim of an earlier boot is of a machine that was switched off, or of another one: not of a container beside us. */
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

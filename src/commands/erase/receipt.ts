// The receipt of an erasure. It lists the data that was scanned, the data that was erased, and the
// data that cannot be erased. It contains salted hashes of the ids, so that a user who knows an id
// can verify it.

import { createHash, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import type { ProcessHost } from "../../platform/embedded/process-identity.ts";
import type { ErasedPeople } from "../../readers/effects/store/erase-rows.ts";
import { CommandError, usageExitCode } from "../context.ts";
import type { StreamCounts } from "./stream-eraser.ts";
import type { UnappliedStream } from "./unapplied.ts";

type Database = Omit<ErasedPeople, "ids" | "remains"> & { readonly database: string };

export interface Receipt {
  readonly erasure: string;
  readonly version: string;
  readonly project: string;
  readonly by: string;
  readonly host: string;
  readonly startedAt: string;
  endedAt?: string;
  readonly ids: {
    /** The following ids are hexadecimal sha256 hashes over salt, project, line feed and id. */
    readonly salt: string;
    readonly given: readonly string[];
    readonly alsoTheirs: string[];
  };
  readonly unapplied: readonly UnappliedStream[];
  readonly streams: StreamCounts[];
  /** The results of earlier attempts that lost the lock. They may count the same data again. */
  readonly before: readonly Pick<Receipt, "erasure" | "streams">[];
  effects?: Database | "none was named";
  notReached: readonly string[];
}

interface Started {
  readonly by: string;
  readonly erasure: string;
  readonly version: string;
  readonly project: string;
  readonly given: readonly string[];
  readonly alsoTheirs: readonly string[];
  readonly unapplied: readonly UnappliedStream[];
  readonly last: Receipt | undefined;
}

const outOfReach = [
  "events that are stored later: they create a new person",
  "properties of other events, and of groups, that name the person",
  "copies made by sinks and readers: databases, Parquet files, warehouses",
  "exported files, and files that were imported",
  "backups and snapshots of streams and databases, mirrors of streams, streams of leaf nodes",
  "in a cluster of nats-server, the Raft logs of its nodes, until they are compacted",
  "logs of proxies and load balancers",
  "counts of usage and of active people, which contain no ids",
] as const;

export function startedReceipt({ given, alsoTheirs, last, ...rest }: Started): Receipt {
  const salt = randomBytes(16).toString("hex");
  const hashed = (id: string) => hashedId(id, salt, rest.project);
  const behind = rest.unapplied.map(
    ({ stream, appliedTo, end }) =>
      `other ids of the person in messages ${appliedTo + 1} to ${end} of ${stream}, which the effects had not applied`,
  );
  return {
    ...rest,
    host: hostname(),
    startedAt: new Date().toISOString(),
    ids: { salt, given: given.map(hashed), alsoTheirs: alsoTheirs.map(hashed) },
    streams: [],
    notReached: [...behind, ...outOfReach],
    before:
      last === undefined ? [] : [...last.before, { erasure: last.erasure, streams: last.streams }],
  };
}

export function addIds({ ids, project }: Receipt, late: readonly string[]): void {
  ids.alsoTheirs.push(...late.map((id) => hashedId(id, ids.salt, project)));
}

export function addErased(receipt: Receipt, erased: Database): void {
  const { effects: before } = receipt;
  if (before === undefined || before === "none was named") {
    receipt.effects = erased;
    return;
  }
  receipt.effects = {
    database: erased.database,
    persons: before.persons + erased.persons,
    links: before.links + erased.links,
    groupMembers: before.groupMembers + erased.groupMembers,
    spikes: before.spikes + erased.spikes,
    rejected: before.rejected + erased.rejected,
    announcements: before.announcements + erased.announcements,
  };
}

function hashedId(id: string, salt: string, project: string): string {
  return createHash("sha256").update(`${salt}${project}\n${id}`).digest("hex");
}

export function userOf(
  { getuid }: Pick<ProcessHost, "getuid">,
  nameOf: () => string = () => userInfo().username,
): string {
  try {
    return nameOf();
  } catch {
    return `uid ${getuid?.()}`;
  }
}

export function writeReceipt(file: string, receipt: Receipt, isNew: boolean): void {
  try {
    const text = `${JSON.stringify(receipt, undefined, 2)}\n`;
    writeFileSync(file, text, { flag: isNew ? "wx" : "w", mode: 0o600 });
  } catch (error) {
    const what = `erase: the receipt cannot be written: ${(error as Error).message}`;
    throw new CommandError(
      isNew ? `${what}. Name another file with --receipt` : what,
      isNew ? usageExitCode : 1,
    );
  }
}

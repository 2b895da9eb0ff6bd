// Reads the rules bucket. It has an immutable entry per version of a project's rules, and an entry
// for the project's secret.

import { createHash } from "node:crypto";
import type { NatsConnection } from "@nats-io/nats-core";
import {
  apiCodes,
  isApiError,
  isFromLeader,
  managerOf,
  NoLeaderError,
  streamInfoOf,
} from "../../../platform/nats/api.ts";
import { bucketStream, bucketSubjects } from "../../../platform/nats/names.ts";
import {
  type BucketPlace,
  bucketName,
  DamagedEntryError,
  registryTimeoutMs,
} from "../registry/bucket.ts";
import { onceLed } from "../registry/leader-wait.ts";

export interface RulesVersion {
  readonly version: number;
  /** The file as its author wrote it. */
  readonly text: string;
  /** `user@host` of the command. */
  readonly author: string;
  readonly atMs: number;
  /** SHA-256 of the text, in hex. */
  readonly sha256: string;
  /** The version whose text a rollback has used; else undefined. */
  readonly from?: number | undefined;
}

interface OfProject extends BucketPlace {
  readonly id: string;
}

export const secretKey = "secret";
/** The format of a version's entry. A gateway does not use an entry of another format. */
export const entryFormat = 1;

export function rulesSubjects({ prefix }: BucketPlace): string {
  return bucketSubjects(bucketName(prefix, "rules"));
}

export function rulesStream({ prefix }: BucketPlace): string {
  return bucketStream(bucketName(prefix, "rules"));
}

/** Returns the version; undefined if it does not exist. Throws a DamagedEntryError. */
export async function readVersion(
  connection: NatsConnection,
  options: OfProject & { readonly version: number },
): Promise<RulesVersion | undefined> {
  const { id, version } = options;
  const value = await onceLed(() => readEntry(connection, options, `${id}.${version}`));
  return value && parseVersion(value, { id, version });
}

/** Returns the numbers of the stored versions in ascending order. */
export async function versionsOf(
  connection: NatsConnection,
  options: OfProject,
): Promise<number[]> {
  const keys = await onceLed(() => keysOf(connection, options, `${options.id}.*`));
  const versions = keys.map((key) => Number(key.slice(options.id.length + 1)));
  return versions.filter(Number.isSafeInteger).sort((one, other) => one - other);
}

/** Returns the key of the hash rules; undefined if the project never had rules. */
export async function readSecret(
  connection: NatsConnection,
  options: OfProject,
): Promise<Uint8Array | undefined> {
  return await readEntry(connection, options, `${options.id}.${secretKey}`);
}

/**
 * Returns the ids of the projects of which the bucket has a version. Rejects if its leader does not
 * answer.
 */
export async function projectsWithVersions(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<Set<string>> {
  const keys = await keysOf(connection, place, "*.*");
  const ids = keys.map((key) => key.split(".") as [string, string]);
  return new Set(ids.filter(([, name]) => name !== secretKey).map(([id]) => id));
}

/** Returns the text of a version's entry. Throws a DamagedEntryError. */
export function parseVersion(
  value: Uint8Array,
  { id, version }: { readonly id: string; readonly version: number },
): RulesVersion {
  const damaged = (why: string) =>
    new DamagedEntryError(`version ${version} of the rules of project ${id} ${why}`);
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(new TextDecoder().decode(value)) as typeof entry;
  } catch {
    throw damaged("is not JSON");
  }
  const { format, text, author, at, sha256, from } = entry;
  if (format !== entryFormat)
    throw damaged(`has format ${String(format)}: another release of Penstock has written it`);
  const isWhole = typeof text === "string" && typeof author === "string" && typeof at === "string";
  if (!isWhole || createHash("sha256").update(text).digest("hex") !== sha256)
    throw damaged("differs from its checksum");
  return { version, text, author, atMs: Date.parse(at), sha256, from: from as number | undefined };
}

/** Reads the leader's entry. Returns undefined without a bucket or an entry. */
async function readEntry(
  connection: NatsConnection,
  place: BucketPlace,
  key: string,
): Promise<Uint8Array | undefined> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  try {
    const query = { last_by_subj: rulesSubjects(place) + key };
    const message = await manager.streams.getMessage(rulesStream(place), query);
    return message === null || message.data.length === 0 ? undefined : message.data;
  } catch (error) {
    if (isApiError(error, apiCodes.streamNotFound)) return undefined;
    throw error;
  }
}

/** Returns the keys that match a filter, such as `shop.*`. */
export async function keysOf(
  connection: NatsConnection,
  place: BucketPlace,
  filter: string,
): Promise<string[]> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const [stream, subjects] = [rulesStream(place), rulesSubjects(place)];
  if ((await streamInfoOf(manager, stream)) === undefined) return [];
  const info = await manager.streams.info(stream, { subjects_filter: subjects + filter });
  if (!isFromLeader(info)) throw new NoLeaderError(stream);
  return Object.keys(info.state.subjects ?? {}).map((key) => key.slice(subjects.length));
}

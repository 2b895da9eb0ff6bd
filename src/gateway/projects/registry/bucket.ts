// The registry's buckets in JetStream, and the format of a project's entry.

import { setTimeout as delay } from "node:timers/promises";
import { jetstream, type StreamConfig, type StreamSource } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../../../platform/base/forms.ts";
import type { Log } from "../../../platform/base/log.ts";
import {
  apiCodes,
  apiPrefixOf,
  isApiError,
  ledStreamInfo,
  managerOf,
} from "../../../platform/nats/api.ts";
import { bucketStream, bucketSubjects } from "../../../platform/nats/names.ts";
import type { Project } from "../project.ts";
import { parseQuota, quotaValue } from "../quota/quota.ts";

/** `projects` has an entry per project, `rules` the versions of their rules. */
type BucketKind = "projects" | "rules";

export interface BucketPlace {
  readonly prefix: string;
  /** Default: `projects`. */
  readonly kind?: BucketKind | undefined;
  readonly replicas: number;
  /**
   * The domain of the hub. It is set only on a leaf node, whose bucket mirrors the hub's bucket.
   */
  readonly hubDomain?: string | undefined;
}

const nameCharsMax = 200;
export const keyCharsMax = 200;

export function bucketName(prefix: string, kind: BucketKind = "projects"): string {
  return `${prefix}_${kind}`;
}

const bucketTitles = { projects: "project registry", rules: "rules bucket" } as const;

function titleOf({ kind = "projects" }: Pick<BucketPlace, "kind">): string {
  return bucketTitles[kind];
}

/**
 * Opens or creates the bucket. Rejects if it is a mirror that has never been up to date with the
 * hub.
 */
export async function openBucket(connection: NatsConnection, place: BucketPlace): Promise<KV> {
  const found = await openExistingBucket(connection, place);
  if (found !== undefined) return found;
  const { prefix, kind, replicas, hubDomain } = place;
  const name = bucketName(prefix, kind);
  const js = jetstream(connection, { timeout: registryTimeoutMs });
  const mirror = hubDomain === undefined ? {} : { mirror: mirrorOf(name, hubDomain) };
  // The bucket keeps only the last value of an entry. Older values would still contain the keys
  // that a rotation has removed.
  const bucket = await new Kvm(js)
    .create(name, { replicas, history: 1, ...mirror })
    .catch((error: unknown) => {
      throw replicasError(error, place);
    });
  if (hubDomain !== undefined) await requireFilled(connection, { ...place, hubDomain });
  return bucket;
}

function replicasError(error: unknown, place: BucketPlace): unknown {
  if (!isApiError(error, apiCodes.streamReplicasNotSupported)) return error;
  const fix = `PENSTOCK_REPLICAS=${place.replicas} needs a cluster, but this server is not in one: set it to 1, or form a cluster`;
  return new Error(`cannot create the ${titleOf(place)}: ${error.message}: ${fix}`, {
    cause: error,
  });
}

export async function openExistingBucket(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<KV | undefined> {
  const { prefix, kind, hubDomain } = place;
  const name = bucketName(prefix, kind);
  if ((await (await bucketReader(connection, name)).state()) === undefined) return undefined;
  if (hubDomain !== undefined) await requireFilled(connection, { ...place, hubDomain });
  return await new Kvm(jetstream(connection, { timeout: registryTimeoutMs })).open(name);
}

/**
 * Returns the prefix of the subjects for writing. On a leaf node, these are the subjects of the
 * hub.
 */
export async function entrySubjects(
  connection: NatsConnection,
  { prefix, kind }: BucketPlace,
): Promise<string> {
  const name = bucketName(prefix, kind);
  const state = await (await bucketReader(connection, name)).state();
  const hubApi = state?.config.mirror?.external?.api;
  const subjects = bucketSubjects(name);
  return hubApi === undefined ? subjects : `${hubApi}.${subjects}`;
}

export async function raiseReplicas(
  connection: NatsConnection,
  { config, replicas, log }: { config: StreamConfig; replicas: number; log: Pick<Log, "warn"> },
): Promise<void> {
  if (config.num_replicas >= replicas) return;
  const bucket = config.name;
  try {
    const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
    await manager.streams.update(bucket, { ...config, num_replicas: replicas });
    log.warn({ bucket, replicas }, "project registry: replicas raised to PENSTOCK_REPLICAS");
  } catch (error) {
    log.warn(
      { bucket, reason: (error as Error).message },
      "project registry: replicas cannot be raised",
    );
  }
}

function isProjectKey(key: string): boolean {
  return key.length <= keyCharsMax && /^[!-~]+$/.test(key);
}

export function isProjectName(name: string): boolean {
  return (
    name.length <= nameCharsMax &&
    !/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u.test(name)
  );
}

type ParsedProject =
  | { readonly ok: true; readonly project: Project }
  | {
      readonly ok: false;
      readonly fault: string;
      /**
       * This flag is true if the keys of the entry certainly belong to no project, so that requests
       * get a 401. If it is false, the keys may be valid, so requests get a 503.
       */
      readonly isUnowned: boolean;
    };

export function parseProject(id: string, value: Uint8Array): ParsedProject {
  if (!isProjectId(id))
    return { ok: false, fault: "its name is not a project id", isUnowned: true };
  const parsed = parseValue(id, value);
  return typeof parsed === "string"
    ? { ok: false, fault: parsed, isUnowned: false }
    : { ok: true, project: parsed };
}

function parseValue(id: string, value: Uint8Array): Project | string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder().decode(value));
  } catch {
    return "it is not JSON";
  }
  if (typeof parsed !== "object" || parsed === null) return "it is not an object";
  const { id: ownId, name, keys, enabled, limits, rules } = parsed as Record<string, unknown>;
  if (ownId !== id) return "its id differs from the key of the entry";
  if (typeof name !== "string") return "name is not a string";
  if (typeof enabled !== "boolean") return "enabled is not a boolean";
  if (!Array.isArray(keys) || !keys.every((key) => typeof key === "string" && isProjectKey(key))) {
    return "keys is not a list of keys";
  }
  const quota = parseQuota(limits);
  if (typeof quota === "string") return quota;
  if (rules !== undefined && !isVersion(rules)) return "rules is not a version";
  return { id, name, keys: keys as string[], enabled, quota, rulesVersion: rules };
}

export function isVersion(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

export function projectValue({ id, name, keys, enabled, quota, rulesVersion }: Project): string {
  return JSON.stringify({
    id,
    name,
    keys,
    enabled,
    ...(quota === undefined ? {} : { limits: quotaValue(quota) }),
    ...(rulesVersion === undefined ? {} : { rules: rulesVersion }),
  });
}

/** All other fields stay unchanged, even unknown fields that a newer version has written. */
export function changedValue(value: Uint8Array, changed: Partial<Project>): string {
  const entry = JSON.parse(new TextDecoder().decode(value)) as { limits?: object };
  const { quota, rulesVersion, ...others } = changed;
  const rules = "rulesVersion" in changed ? { rules: rulesVersion } : {};
  const limits =
    "quota" in changed ? { limits: quota && { ...entry.limits, ...quotaValue(quota) } } : {};
  return JSON.stringify({ ...entry, ...others, ...limits, ...rules });
}

/** A failure that a command expects. Its message is shown to the operator. */
export class ProjectError extends Error {}

export class DamagedEntryError extends ProjectError {}

export class UnknownProjectError extends ProjectError {
  readonly projectId: string;

  constructor(projectId: string) {
    super(`there is no project ${projectId}`);
    this.projectId = projectId;
  }
}

/** Clients publish a project's key, so it must not be one of PostHog's secret keys. */
const secretKinds = [
  ["phx_", "a personal key"],
  ["phs_", "a secret key"],
] as const;

export function requireId(id: string): void {
  if (!isProjectId(id))
    throw new ProjectError(`the project's id must match [A-Za-z0-9_-]{1,64} (got "${id}")`);
}

export function requireName(name: string): void {
  if (!isProjectName(name))
    throw new ProjectError("the project's name must be at most 200 printable characters");
}

/**
 * Throws a ProjectError if the key is invalid. The message omits the key, as it may be a secret.
 */
export function requireKey(key: string): void {
  if (!isProjectKey(key)) {
    throw new ProjectError("the key must be 1 to 200 printable ASCII characters without spaces");
  }
  const secret = secretKinds.find(([beginning]) => key.startsWith(beginning));
  if (secret !== undefined) {
    const [beginning, kind] = secret;
    throw new ProjectError(
      `the key begins with ${beginning}: that is ${kind} of PostHog, a secret that must not appear in apps and pages. Use the project's key, which begins with phc_, or omit the key to create a new key`,
    );
  }
}

const filledMark = "penstock-filled";

function mirrorOf(bucket: string, hubDomain: string): StreamSource {
  return { name: bucketStream(bucket), external: { api: apiPrefixOf(hubDomain), deliver: "" } };
}

export function isMirrorOf({ mirror }: StreamConfig, hubDomain: string): boolean {
  return mirror?.external?.api === apiPrefixOf(hubDomain);
}

export function isFilled({ metadata }: StreamConfig): boolean {
  return metadata?.[filledMark] !== undefined;
}

async function requireFilled(
  connection: NatsConnection,
  place: BucketPlace & { readonly hubDomain: string },
): Promise<void> {
  const { hubDomain } = place;
  const bucket = bucketName(place.prefix, place.kind);
  const failed = `cannot open the ${titleOf(place)}`;
  const found = await (await bucketReader(connection, bucket)).state();
  if (found === undefined) throw new Error(`${failed}: there is no bucket ${bucket}`);
  const { config, lastSequence } = found;
  if (!isMirrorOf(config, hubDomain)) {
    throw new Error(
      `${failed}: stream ${config.name} is not a mirror of the stream in domain ${hubDomain}: delete the stream here, and the gateway recreates it as a mirror`,
    );
  }
  if (isFilled(config)) return;
  const atHub = await lastSequenceAtHub(connection, config.name, { hubDomain, failed });
  if (lastSequence < atHub) {
    throw new Error(
      `${failed}: its mirror has copied ${lastSequence} of ${atHub} entries from the hub`,
    );
  }
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const metadata = { ...config.metadata, [filledMark]: new Date().toISOString() };
  await manager.streams.update(config.name, { metadata });
}

async function lastSequenceAtHub(
  connection: NatsConnection,
  stream: string,
  { hubDomain, failed }: { hubDomain: string; failed: string },
): Promise<number> {
  const failure = (why: string, cause?: unknown) =>
    new Error(`${failed}: the hub, domain ${hubDomain}, ${why}`, { cause });
  const options = { domain: hubDomain, timeoutMs: registryTimeoutMs };
  const info = await managerOf(connection, options)
    .then((hub) => ledStreamInfo(hub, stream))
    .catch((error: Error) => {
      throw failure(`does not answer: ${error.message}`, error);
    });
  if (info === undefined) throw failure("has no projects yet: run `penstock gather` at the hub");
  return info.state.last_seq;
}

export interface BucketState {
  readonly created: string;
  readonly lastSequence: number;
  readonly entries: number;
  readonly config: StreamConfig;
}

export interface BucketReader {
  readonly name: string;
  /** Returns undefined if there is no bucket. Rejects if the leader does not answer. */
  state(): Promise<BucketState | undefined>;
  next(sequence: number): Promise<BucketEntry | undefined>;
}

export interface BucketEntry {
  readonly key: string;
  readonly operation: "PUT" | "DEL" | "PURGE";
  readonly revision: number;
  readonly value: Uint8Array;
}

export const registryTimeoutMs = 3_000;

export async function bucketReader(
  connection: NatsConnection,
  bucket: string,
): Promise<BucketReader> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const name = bucketStream(bucket);
  const subjects = bucketSubjects(bucket);
  return {
    name,
    async state() {
      const info = await ledStreamInfo(manager, name);
      if (info === undefined) return undefined;
      const { created, config, state } = info;
      return { created, config, lastSequence: state.last_seq, entries: state.messages };
    },
    async next(sequence) {
      // Any replica could answer a direct get, but only the answer of the leader is certain.
      const query = { seq: sequence, next_by_subj: `${subjects}>` };
      const message = await manager.streams.getMessage(name, query);
      if (message === null) return undefined;
      const operation = message.header?.get("KV-Operation");
      return {
        key: message.subject.slice(subjects.length),
        operation: operation === "DEL" || operation === "PURGE" ? operation : "PUT",
        revision: message.seq,
        value: message.data,
      };
    },
  };
}

export interface WholeReading {
  readonly lastSequence: number;
  readonly entries: ReadonlyMap<string, BucketEntry>;
}

const triesMax = 10;
const retryMs = 100;

/**
 * Reads the whole bucket. Rejects if the leader does not answer, or if the replica that answers
 * stays behind the leader.
 */
export async function readWhole(bucket: KV, reader: BucketReader): Promise<WholeReading> {
  for (let tries = 1; ; tries++) {
    const state = await reader.state();
    if (state === undefined || state.entries === 0)
      return { lastSequence: state?.lastSequence ?? 0, entries: new Map() };
    const entries = new Map<string, BucketEntry>();
    let sequence = 0;
    for await (const entry of await bucket.history()) {
      entries.set(entry.key, entry);
      sequence = Math.max(sequence, entry.revision);
    }
    // The last sequences may be missing, because entries can be removed permanently. So the reading
    // is also complete if the leader has no later entry.
    const isWhole =
      sequence >= state.lastSequence || (await reader.next(sequence + 1)) === undefined;
    if (isWhole) return { lastSequence: Math.max(sequence, state.lastSequence), entries };
    if (tries === triesMax)
      throw new Error(
        `cannot read stream ${reader.name}: the answering replica lags behind its leader`,
      );
    await delay(retryMs);
  }
}

// The registry's bucket in JetStream, and the format of its values.

import { jetstream, type StreamConfig } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../../../platform/base/forms.ts";
import type { Log } from "../../../platform/base/log.ts";
import { apiCodes, isApiError, managerOf } from "../../../platform/nats/api.ts";
import { bucketSubjects } from "../../../platform/nats/names.ts";
import type { Project } from "../project.ts";
import { parseQuota, quotaValue } from "../quota/quota.ts";
import { bucketReader, registryTimeoutMs } from "./bucket-state.ts";
import { mirrorOf, requireFilled } from "./hub-mirror.ts";

/** One bucket per subject prefix. A gateway raises `replicas` to its own setting. */
export interface BucketPlace {
  readonly prefix: string;
  readonly replicas: number;
  /** The JetStream domain of the hub; set only for a leaf node, whose bucket mirrors the hub's. */
  readonly hubDomain?: string | undefined;
}

const nameCharsMax = 200;
export const keyCharsMax = 200;

export function bucketName(prefix: string): string {
  return `${prefix}_projects`;
}

/** Opens or creates the bucket. Rejects if a mirror has never caught up with the hub. */
export async function openBucket(connection: NatsConnection, place: BucketPlace): Promise<KV> {
  const found = await openExistingBucket(connection, place);
  if (found !== undefined) return found;
  const { prefix, replicas, hubDomain } = place;
  const name = bucketName(prefix);
  const js = jetstream(connection, { timeout: registryTimeoutMs });
  const mirror = hubDomain === undefined ? {} : { mirror: mirrorOf(name, hubDomain) };
  // Keys that were removed by a rotation do not remain in older values.
  const bucket = await new Kvm(js)
    .create(name, { replicas, history: 1, ...mirror })
    .catch((error: unknown) => {
      throw replicasError(error, replicas);
    });
  if (hubDomain !== undefined) await requireFilled(connection, { bucket: name, hubDomain });
  return bucket;
}

function replicasError(error: unknown, replicas: number): unknown {
  if (!isApiError(error, apiCodes.streamReplicasNotSupported)) return error;
  const fix = `PENSTOCK_REPLICAS=${replicas} needs a cluster, and this server is in none: set it to 1, or form a cluster`;
  return new Error(`create the project registry: ${error.message}: ${fix}`, { cause: error });
}

/** Opens the bucket without creating it; undefined if there is none. Rejects like `openBucket`. */
export async function openExistingBucket(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<KV | undefined> {
  const { prefix, hubDomain } = place;
  const name = bucketName(prefix);
  if ((await (await bucketReader(connection, name)).state()) === undefined) return undefined;
  if (hubDomain !== undefined) await requireFilled(connection, { bucket: name, hubDomain });
  // `open` does not create a bucket that has just vanished.
  return await new Kvm(jetstream(connection, { timeout: registryTimeoutMs })).open(name);
}

/** Returns the prefix of the subjects for writing. On a leaf node these are the hub's. */
export async function entrySubjects(
  connection: NatsConnection,
  { prefix }: BucketPlace,
): Promise<string> {
  const name = bucketName(prefix);
  const state = await (await bucketReader(connection, name)).state();
  const hubApi = state?.config.mirror?.external?.api;
  const subjects = bucketSubjects(name);
  return hubApi === undefined ? subjects : `${hubApi}.${subjects}`;
}

interface BucketReplicas {
  readonly config: StreamConfig;
  readonly replicas: number;
  readonly log: Pick<Log, "warn">;
}

/** The process that created the bucket may have had a lower setting. */
export async function raiseReplicas(
  connection: NatsConnection,
  options: BucketReplicas,
): Promise<void> {
  const { config, replicas, log } = options;
  if (config.num_replicas >= replicas) return;
  const bucket = config.name;
  try {
    const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
    await manager.streams.update(bucket, { ...config, num_replicas: replicas });
    log.warn({ bucket, replicas }, "bucket had fewer replicas than the settings: raised");
  } catch (error) {
    log.warn({ bucket, reason: (error as Error).message }, "bucket replicas cannot be raised");
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
      /** The error in the value, without the value. */
      readonly fault: string;
      /** Keys in the entry belong to no project: 401. A key in any other one may be valid: 503. */
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
  const { id: ownId, name, keys, enabled, limits } = parsed as Record<string, unknown>;
  if (ownId !== id) return "its id is not the entry's";
  if (typeof name !== "string") return "name is not a string";
  if (typeof enabled !== "boolean") return "enabled is not a boolean";
  if (!Array.isArray(keys) || !keys.every((key) => typeof key === "string" && isProjectKey(key))) {
    return "keys is not a list of keys";
  }
  const quota = parseQuota(limits);
  if (typeof quota === "string") return quota;
  return { id, name, keys: keys as string[], enabled, quota };
}

export function projectValue({ id, name, keys, enabled, quota }: Project): string {
  return JSON.stringify({
    id,
    name,
    keys,
    enabled,
    ...(quota === undefined ? {} : { limits: quotaValue(quota) }),
  });
}

/** Replaces fields of the value. All others stay, including those of newer versions. */
export function changedValue(value: Uint8Array, changed: Partial<Project>): string {
  const entry = JSON.parse(new TextDecoder().decode(value)) as { limits?: object };
  const { quota, ...others } = changed;
  const limits =
    "quota" in changed ? { limits: quota && { ...entry.limits, ...quotaValue(quota) } } : {};
  return JSON.stringify({ ...entry, ...others, ...limits });
}

/** An expected failure of a command. The message is for the operator. */
export class ProjectError extends Error {}

/** Prefixes of PostHog's secret keys. Clients publish a project's key. */
const secretKinds = [
  ["phx_", "a personal key"],
  ["phs_", "a secret key"],
] as const;

export function requireId(id: string): void {
  if (!isProjectId(id))
    throw new ProjectError(`the project's id must match [A-Za-z0-9_-]{1,64}: got "${id}"`);
}

export function requireName(name: string): void {
  if (!isProjectName(name))
    throw new ProjectError("the project's name must be at most 200 printable characters");
}

/** The message does not show the key, which may be a secret. */
export function requireKey(key: string): void {
  if (!isProjectKey(key)) {
    throw new ProjectError("the key must be 1 to 200 printable ASCII characters without spaces");
  }
  const secret = secretKinds.find(([beginning]) => key.startsWith(beginning));
  if (secret !== undefined) {
    const [beginning, kind] = secret;
    throw new ProjectError(
      `the key begins with ${beginning}: that is ${kind} of PostHog, a secret that must not appear in apps and pages. Use the project's key, which begins with phc_, or omit the key to create one`,
    );
  }
}

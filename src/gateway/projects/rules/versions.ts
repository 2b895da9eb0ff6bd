// Changes the rules of a project. The rules bucket has an immutable entry per version, and
// the project's registry entry has the number of the version in use. A change writes the version
// first, and then compares and sets the registry entry.

import { createHash, randomBytes } from "node:crypto";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { apiCodes, isApiError, managerOf } from "../../../platform/nats/api.ts";
import {
  type BucketPlace,
  DamagedEntryError,
  openBucket,
  ProjectError,
  registryTimeoutMs,
} from "../registry/bucket.ts";
import { changeProject, type OfProject, requireExisting } from "../registry/commands.ts";
import { writeEntry } from "../registry/entry-write.ts";
import { onceLed } from "../registry/leader-wait.ts";
import {
  entryFormat,
  keysOf,
  type RulesVersion,
  readSecret,
  readVersion,
  rulesStream,
  rulesSubjects,
  secretKey,
  versionsOf,
} from "./stored-versions.ts";

interface AppliedRules {
  readonly version: number;
  /** The version in use before; undefined if the project had no rules. */
  readonly before: RulesVersion | undefined;
  /** False if the text is already in use, so that nothing was changed. */
  readonly isNew: boolean;
}

/** Number of versions that a project keeps. */
export const versionsMax = 50;
const secretBytes = 32;

function rulesPlace(place: BucketPlace): BucketPlace {
  return { ...place, kind: "rules" };
}

interface ToApply extends OfProject, Pick<RulesVersion, "text" | "author" | "from"> {
  /** The version that must be in use before, 0 for no rules. Without it, no version is required. */
  readonly ifVersion?: number | undefined;
}

/**
 * Makes a text the rules of a project. The text must have passed `parseRules`. Throws a
 * ProjectError if another command has changed the rules meanwhile. Nothing is changed then.
 */
export async function applyRules(
  connection: NatsConnection,
  options: ToApply,
): Promise<AppliedRules> {
  const { id, text, author, from } = options;
  const { version: base, found: before } = await currentRules(connection, options);
  if (options.ifVersion !== undefined && options.ifVersion !== (base ?? 0))
    throw new ProjectError(conflictText(id, base));
  if (before?.text === text) return { version: before.version, before, isNew: false };
  const place = rulesPlace(options);
  await onceLed(() => openBucket(connection, place));
  await ensureSecret(connection, options);
  const sha256 = createHash("sha256").update(text).digest("hex");
  const entry = { format: entryFormat, text, author, at: new Date().toISOString(), sha256, from };
  const { version } = await writeEntry(connection, place, async () => {
    const next = Math.max(base ?? 0, ...(await versionsOf(connection, options))) + 1;
    const expect = { lastSubjectSequence: 0 };
    return { key: `${id}.${next}`, value: JSON.stringify(entry), expect, version: next };
  });
  try {
    await changeProject(connection, options, ({ rulesVersion }) => {
      if (rulesVersion === base) return { rulesVersion: version };
      throw new ProjectError(conflictText(id, rulesVersion));
    });
  } catch (error) {
    if (error instanceof ProjectError) await erase(connection, options, [`${id}.${version}`]);
    throw error;
  }
  await eraseOld(connection, options, version);
  return { version, before, isNew: true };
}

function conflictText(id: string, version: number | undefined): string {
  return `cannot change the rules of project ${id}: another command has changed them to version ${version ?? "none"} meanwhile. Compare with it (\`penstock rules diff ${id} FILE\`) and apply again`;
}

interface CurrentRules {
  /** The number of the version in use; undefined if the project has no rules. */
  readonly version: number | undefined;
  /** The version in use; undefined also if its entry is lost or damaged. */
  readonly found: RulesVersion | undefined;
}

/** Returns the rules that a new version replaces. */
export async function currentRules(
  connection: NatsConnection,
  options: OfProject,
): Promise<CurrentRules> {
  const { rulesVersion: version } = await requireExisting(connection, options);
  if (version === undefined) return { version, found: undefined };
  return { version, found: await versionOrNone(connection, { ...options, version }) };
}

/** Returns the version in use; undefined if the project has no rules. Throws a ProjectError. */
export async function rulesInUse(
  connection: NatsConnection,
  options: OfProject,
): Promise<RulesVersion | undefined> {
  const { id } = options;
  const { rulesVersion: version } = await requireExisting(connection, options);
  if (version === undefined) return undefined;
  const found = await readVersion(connection, { ...options, version });
  if (found !== undefined) return found;
  throw new DamagedEntryError(
    `project ${id} uses version ${version} of its rules, but stream ${rulesStream(options)} has no such entry: restore the stream from a backup, or apply the file again with \`penstock rules apply ${id} FILE\``,
  );
}

/** Returns whether the project has a version of rules or a secret. */
export async function hasRules(connection: NatsConnection, options: OfProject): Promise<boolean> {
  return (await onceLed(() => keysOf(connection, options, `${options.id}.*`))).length > 0;
}

/** Erases all versions and the secret of a project. Overwrites them in the store's files. */
export async function removeRules(connection: NatsConnection, options: OfProject): Promise<number> {
  const keys = await onceLed(() => keysOf(connection, options, `${options.id}.*`));
  await erase(connection, options, keys);
  return keys.length;
}

/** Returns undefined also for a damaged entry, so that applying a file again repairs it. */
async function versionOrNone(
  connection: NatsConnection,
  options: OfProject & { readonly version: number },
): Promise<RulesVersion | undefined> {
  try {
    return await readVersion(connection, options);
  } catch (error) {
    if (error instanceof DamagedEntryError) return undefined;
    throw error;
  }
}

async function ensureSecret(connection: NatsConnection, options: OfProject): Promise<void> {
  await writeEntry(connection, rulesPlace(options), async () => {
    if ((await readSecret(connection, options)) !== undefined) return undefined;
    const value = randomBytes(secretBytes);
    return { key: `${options.id}.${secretKey}`, value, expect: { lastSubjectSequence: 0 } };
  });
}

async function eraseOld(
  connection: NatsConnection,
  options: OfProject,
  inUse: number,
): Promise<void> {
  const versions = (await versionsOf(connection, options)).filter((version) => version !== inUse);
  const old = versions.slice(0, Math.max(0, versions.length + 1 - versionsMax));
  await erase(
    connection,
    options,
    old.map((version) => `${options.id}.${version}`),
  );
}

/** Overwrites entries in the store's files, and removes them without a marker. */
async function erase(
  connection: NatsConnection,
  place: BucketPlace,
  keys: readonly string[],
): Promise<void> {
  const { hubDomain: domain } = place;
  const at = { timeoutMs: registryTimeoutMs, ...(domain === undefined ? {} : { domain }) };
  const manager = await managerOf(connection, at);
  for (const key of keys) await onceLed(() => eraseEntry(manager, place, key));
}

async function eraseEntry(
  manager: JetStreamManager,
  place: BucketPlace,
  key: string,
): Promise<void> {
  const stream = rulesStream(place);
  try {
    const query = { last_by_subj: rulesSubjects(place) + key };
    const message = await manager.streams.getMessage(stream, query);
    if (message !== null) await manager.streams.deleteMessage(stream, message.seq, true);
  } catch (error) {
    const isGone =
      isApiError(error, apiCodes.streamNotFound) || isApiError(error, apiCodes.noMessageFound);
    if (!isGone) throw error;
  }
}

// The commands by which an operator changes the registry. A change fails if its entry has changed
// since it was read, so that concurrent operators do not overwrite each other. A change that
// assigns a key fails if any entry has changed, because another project may have received the same
// key.

import { randomInt } from "node:crypto";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Project, ProjectQuota } from "../project.ts";
import { burstSecondsDefault } from "../quota/quota.ts";
import { versionsOf } from "../rules/stored-versions.ts";
import {
  type BucketEntry,
  type BucketPlace,
  bucketName,
  bucketReader,
  changedValue,
  DamagedEntryError,
  openBucket,
  openExistingBucket,
  ProjectError,
  parseProject,
  projectValue,
  readWhole,
  requireId,
  requireKey,
  requireName,
  UnknownProjectError,
  type WholeReading,
} from "./bucket.ts";
import { writeEntry } from "./entry-write.ts";
import { onceLed } from "./leader-wait.ts";
import {
  isMarked,
  lossMark,
  lossOfAll,
  markLoss,
  requireNoneLacking,
  storedEvents,
} from "./loss-mark.ts";

export interface OfProject extends BucketPlace {
  readonly id: string;
}

interface AddProject extends OfProject {
  readonly name?: string | undefined;
  readonly key?: string | undefined;
}

interface RotateKey extends OfProject {
  readonly keepOld?: boolean | undefined;
  readonly key?: string | undefined;
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const keyRandomChars = 43;

/** The key of the sample project. It is public. */
export const demoKey = "phc_demo";
const demo = { id: "demo", name: "Demo", key: demoKey };

/** Returns `phc_` and 43 random characters of base62, which have 256 bits. */
export function newKey(): string {
  return `phc_${Array.from({ length: keyRandomChars }, () => alphabet[randomInt(alphabet.length)]).join("")}`;
}

/**
 * If the rules bucket has versions of the id, the new entry gets the newest: the registry was lost.
 * Throws a ProjectError if the id or the key is invalid or already used.
 */
export async function addProject(
  connection: NatsConnection,
  options: AddProject,
): Promise<Project> {
  const { id, name = id, key = newKey() } = options;
  requireId(id);
  requireName(name);
  requireKey(key);
  await onceLed(() => openBucket(connection, options));
  await markLoss(connection, options);
  const rulesVersion = (await versionsOf(connection, options)).at(-1);
  const project: Project = { id, name, keys: [key], enabled: true, rulesVersion };
  await writeEntry(connection, options, async () => {
    const { lastSequence, projects, entries } = await readRegistry(connection, options);
    requireFree(
      key,
      projects.filter((other) => other.id !== id),
    );
    if (entries.get(id)?.operation === "PUT")
      throw new ProjectError(`cannot add project ${id}: it already exists`);
    return { key: id, value: projectValue(project), expect: { lastSequence } };
  });
  return project;
}

/** Returns the projects, sorted by id. Values that are not valid projects are skipped. */
export async function listProjects(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<Project[]> {
  return [...(await onceLed(() => readRegistry(connection, place))).projects];
}

/** Returns the project. Throws an UnknownProjectError or a DamagedEntryError. */
export async function requireExisting(
  connection: NatsConnection,
  options: OfProject,
): Promise<Project> {
  const { entries } = await onceLed(() => readRegistry(connection, options));
  return projectOfEntry(options.id, entries.get(options.id)).project;
}

export async function hasEntry(connection: NatsConnection, options: OfProject): Promise<boolean> {
  const { entries } = await onceLed(() => readRegistry(connection, options));
  return entries.has(options.id);
}

interface ReadProjects extends WholeReading {
  readonly projects: readonly Project[];
}

/** Returns no projects if there is no bucket. Does not create a bucket. */
export async function readRegistry(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<ReadProjects> {
  const bucket = await openExistingBucket(connection, place);
  if (bucket === undefined) return { lastSequence: 0, entries: new Map(), projects: [] };
  const reading = await readWhole(bucket, await bucketReader(connection, bucketName(place.prefix)));
  const parsed = [...reading.entries.values()].map(projectOf);
  const projects = parsed.filter((project) => project !== undefined);
  return { ...reading, projects: projects.sort((left, right) => (left.id < right.id ? -1 : 1)) };
}

function projectOf({ key, operation, value }: BucketEntry): Project | undefined {
  const parsed = operation === "PUT" ? parseProject(key, value) : undefined;
  return parsed?.ok ? parsed.project : undefined;
}

/**
 * Adds a new key as the last key of the project. Removes its other keys unless `keepOld` is true.
 */
export async function rotateKey(connection: NatsConnection, options: RotateKey): Promise<Project> {
  const { id, keepOld = false, key = newKey() } = options;
  requireKey(key);
  const { project } = await writeEntry(connection, options, async () => {
    const { lastSequence, projects, entries } = await readRegistry(connection, options);
    requireFree(key, projects);
    const found = projectOfEntry(id, entries.get(id));
    const keys = [...(keepOld ? found.project.keys : []), key];
    const project = { ...found.project, keys };
    const value = changedValue(found.value, { keys });
    return { key: id, value, expect: { lastSequence }, project };
  });
  return project;
}

export async function retireKeys(connection: NatsConnection, options: OfProject): Promise<Project> {
  return await changeProject(connection, options, ({ keys }) => ({ keys: keys.slice(-1) }));
}

export async function setEnabled(
  connection: NatsConnection,
  options: OfProject & { enabled: boolean },
): Promise<Project> {
  return await changeProject(connection, options, () => ({ enabled: options.enabled }));
}

export async function setQuota(
  connection: NatsConnection,
  options: OfProject & { quota: ProjectQuota | undefined },
): Promise<Project> {
  return await changeProject(connection, options, () => ({ quota: options.quota }));
}

/** Throws a ProjectError if a burst is set without a rate. */
export async function changeLimits(
  connection: NatsConnection,
  options: OfProject & { limits: Partial<ProjectQuota> },
): Promise<Project> {
  const { id, limits } = options;
  return await changeProject(connection, options, ({ quota: before }) => {
    const quota = { burstSeconds: burstSecondsDefault, ...before, ...limits };
    const hasRate = quota.eventsPerSecond !== undefined || quota.bytesPerSecond !== undefined;
    if (limits.burstSeconds !== undefined && !hasRate)
      throw new ProjectError(
        `cannot limit project ${id}: --burst needs a rate, and the project has none. Add --events-per-second or --bytes-per-second`,
      );
    return { quota };
  });
}

/**
 * Creates the demo project if necessary. Returns undefined if the registry has lost projects,
 * because a new project would hide the loss.
 */
export async function ensureDemoProject(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<Project | undefined> {
  const found = await demoIn(connection, place);
  if (found !== undefined || (await hasLostProjects(connection, place))) return found;
  try {
    return await addProject(connection, {
      ...demo,
      prefix: place.prefix,
      replicas: place.replicas,
    });
  } catch (error) {
    const added = error instanceof ProjectError ? await demoIn(connection, place) : undefined;
    if (added === undefined) throw error;
    return added;
  }
}

async function demoIn(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<Project | undefined> {
  const projects = await listProjects(connection, place);
  return (
    projects.find(({ id }) => id === demo.id) ??
    projects.find(({ keys }) => keys.includes(demo.key))
  );
}

async function hasLostProjects(connection: NatsConnection, place: BucketPlace): Promise<boolean> {
  const stored = await onceLed(() => storedEvents(connection, place.prefix));
  const { lastSequence, entries } = await onceLed(() => readRegistry(connection, place));
  if (isMarked(entries)) return true;
  if (lossOfAll({ lastSequence, entries: entries.size }, stored) !== undefined) return true;
  return [...stored.projectIds].some((id) => !entries.has(id));
}

/**
 * Deletes the entry but leaves a deletion marker, because gateways need it to distinguish a removal
 * from a loss. Throws an UnknownProjectError if there is no registry.
 */
export async function removeEntry(connection: NatsConnection, options: OfProject): Promise<void> {
  const { id } = options;
  const bucket = await onceLed(() => openExistingBucket(connection, options));
  await writeEntry(connection, options, async () => {
    if (bucket === undefined) throw new UnknownProjectError(id);
    const entry = (await bucket.get(id)) ?? undefined;
    if (entry !== undefined && entry.operation !== "PUT") return undefined;
    return { key: id, value: undefined, expect: { lastSubjectSequence: entry?.revision ?? 0 } };
  });
}

export async function changeProject(
  connection: NatsConnection,
  options: OfProject,
  edit: (project: Project) => Partial<Project>,
): Promise<Project> {
  const { id } = options;
  const bucket = await onceLed(() => openExistingBucket(connection, options));
  const { project } = await writeEntry(connection, options, async () => {
    requireId(id);
    const found = projectOfEntry(id, (await bucket?.get(id)) ?? undefined);
    const changed = edit(found.project);
    const value = changedValue(found.value, changed);
    const expect = { lastSubjectSequence: found.revision };
    return { key: id, value, expect, project: { ...found.project, ...changed } };
  });
  return project;
}

/**
 * Declares that no project is missing from the registry. Returns the number of projects. Throws a
 * ProjectError if the streams contain events of a project that has no entry.
 */
export async function declareComplete(
  connection: NatsConnection,
  place: BucketPlace,
): Promise<number> {
  await onceLed(() => openBucket(connection, place));
  const written = await writeEntry(connection, place, async () => {
    const { lastSequence, projects, entries } = await readRegistry(connection, place);
    await requireNoneLacking(connection, place, entries);
    const count = projects.length;
    return { key: lossMark, value: undefined, expect: { lastSequence }, count };
  });
  return written.count;
}

interface FoundProject {
  readonly project: Project;
  readonly value: Uint8Array;
  readonly revision: number;
}

function projectOfEntry(id: string, entry: Omit<BucketEntry, "key"> | undefined): FoundProject {
  requireId(id);
  if (entry?.operation !== "PUT") throw new UnknownProjectError(id);
  const parsed = parseProject(id, entry.value);
  if (!parsed.ok)
    throw new DamagedEntryError(
      `the registry's entry of project ${id} is damaged: ${parsed.fault}`,
    );
  return { project: parsed.project, value: entry.value, revision: entry.revision };
}

function requireFree(key: string, projects: readonly Project[]): void {
  const holder = projects.find(({ keys }) => keys.includes(key));
  if (holder !== undefined)
    throw new ProjectError(`the key is already in use by project ${holder.id}`);
}

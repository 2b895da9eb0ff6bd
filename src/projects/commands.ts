// What an operator does to the registry: add a project, list them, give out a new key, switch one off and on, limit it. Changes
// are compare-and-set on the entry's revision, so that two operators at once lose neither's. Keys are made here.

import { randomInt } from "node:crypto";
import { JetStreamApiError } from "@nats-io/jetstream";
import type { KV, KvEntry } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Project, ProjectLimits } from "../types.ts";
import {
  type BucketPlace,
  changedValue,
  isProjectId,
  isProjectKey,
  isProjectName,
  openBucket,
  parseProject,
  projectValue,
} from "./bucket.ts";

/** An expected failure: the message is for the operator. */
export class ProjectError extends Error {}

export interface AddProject extends BucketPlace {
  readonly id: string;
  /** Default: the id. */
  readonly name?: string | undefined;
  /** Default: a new one. */
  readonly key?: string | undefined;
}

export interface RotateKey extends BucketPlace {
  readonly id: string;
  /** The keys there are stay valid beside the new one. Default: they do not. */
  readonly keepOld?: boolean | undefined;
  readonly key?: string | undefined;
}

export interface SetEnabled extends BucketPlace {
  readonly id: string;
  readonly enabled: boolean;
}

export interface SetLimits extends BucketPlace {
  readonly id: string;
  /** In place of those there are; undefined for none. */
  readonly limits: ProjectLimits | undefined;
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const keyRandomChars = 43;
const triesMax = 8;
/** "wrong last sequence": the entry is not at the revision the change was made from. nats-server, server/errors.json. */
const wrongRevision = 10_071;

const demo = { id: "demo", name: "Demo", key: "phc_demo" };

/** `phc_` and 43 characters of base62: 256 bits. */
export function newKey(): string {
  return `phc_${Array.from({ length: keyRandomChars }, () => alphabet[randomInt(alphabet.length)]).join("")}`;
}

/** Throws a ProjectError when there is such a project already. */
export async function addProject(connection: NatsConnection, options: AddProject): Promise<Project> {
  const { id, name = id, key = newKey() } = options;
  if (!isProjectId(id)) throw new ProjectError(`add project: the id must match [A-Za-z0-9_-]{1,64}: got "${id}"`);
  if (!isProjectName(name)) throw new ProjectError("add project: the name must be at most 200 printable characters");
  const bucket = await openBucket(connection, options);
  await requireFreeKey(bucket, key, id);
  const project: Project = { id, name, keys: [key], enabled: true };
  try {
    await bucket.create(id, projectValue(project));
  } catch (error) {
    if (isConflict(error)) throw new ProjectError(`add project: there is a project ${id} already`);
    throw error;
  }
  return project;
}

/** All projects, by id. Values that are not projects are left out; the gateway ignores them too, and says so in its log. */
export async function listProjects(connection: NatsConnection, place: BucketPlace): Promise<Project[]> {
  return await projectsIn(await openBucket(connection, place));
}

async function projectsIn(bucket: KV): Promise<Project[]> {
  const latest = new Map<string, KvEntry>();
  for await (const entry of await bucket.history()) latest.set(entry.key, entry);
  const projects: Project[] = [];
  for (const entry of latest.values()) {
    const parsed = entry.operation === "PUT" ? parseProject(entry.key, entry.value) : undefined;
    if (parsed?.ok) projects.push(parsed.project);
  }
  return projects.sort((left, right) => (left.id < right.id ? -1 : 1));
}

/** Answers the project with the new key as its last one. */
export async function rotateKey(connection: NatsConnection, options: RotateKey): Promise<Project> {
  const { id, keepOld = false, key = newKey() } = options;
  const bucket = await openBucket(connection, options);
  await requireFreeKey(bucket, key, undefined);
  return await change(bucket, id, ({ keys }) => ({ keys: [...(keepOld ? keys : []), key] }));
}

/** The newest key alone stays valid: the end of a rotation that kept the old ones for a while. */
export async function retireKeys(connection: NatsConnection, options: BucketPlace & { id: string }): Promise<Project> {
  return await change(await openBucket(connection, options), options.id, ({ keys }) => ({ keys: keys.slice(-1) }));
}

export async function setEnabled(connection: NatsConnection, options: SetEnabled): Promise<Project> {
  const { id, enabled } = options;
  return await change(await openBucket(connection, options), id, () => ({ enabled }));
}

export async function setLimits(connection: NatsConnection, options: SetLimits): Promise<Project> {
  const { id, limits } = options;
  return await change(await openBucket(connection, options), id, () => ({ limits }));
}

/** Adds the project `demo` if there is none; one that is there stays as it is. Answers it. */
export async function ensureDemoProject(connection: NatsConnection, place: BucketPlace): Promise<Project> {
  try {
    return await addProject(connection, { ...demo, prefix: place.prefix, replicas: place.replicas });
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    const projects = await listProjects(connection, place);
    const found = projects.find((project) => project.id === demo.id);
    // Another project has the demo key: that one is then the one to try things with.
    const holder = found ?? projects.find((project) => project.keys.includes(demo.key));
    if (holder === undefined) throw error;
    return holder;
  }
}

async function change(bucket: KV, id: string, edit: (project: Project) => Partial<Project>): Promise<Project> {
  if (!isProjectId(id)) throw new ProjectError(`the project's id must match [A-Za-z0-9_-]{1,64}: got "${id}"`);
  for (let tries = 0; tries < triesMax; tries++) {
    const entry = await bucket.get(id);
    if (entry === null || entry.operation !== "PUT") throw new ProjectError(`there is no project ${id}`);
    const parsed = parseProject(id, entry.value);
    if (!parsed.ok) throw new ProjectError(`the registry's entry of project ${id} is damaged: ${parsed.fault}`);
    const changed = edit(parsed.project);
    try {
      await bucket.update(id, changedValue(entry.value, changed), entry.revision);
      return { ...parsed.project, ...changed };
    } catch (error) {
      if (!isConflict(error)) throw error;
      // Someone else was faster: the edit is made again on what they left.
    }
  }
  throw new ProjectError(`project ${id} is being changed by others without pause: try again`);
}

async function requireFreeKey(bucket: KV, key: string, newId: string | undefined): Promise<void> {
  if (!isProjectKey(key)) {
    throw new ProjectError("the key must be 1 to 200 printable ASCII characters without spaces");
  }
  // A project of the same id is the caller's to refuse, in words of its own.
  const holder = (await projectsIn(bucket)).find((project) => project.id !== newId && project.keys.includes(key));
  if (holder !== undefined) throw new ProjectError(`the key is in use already, by project ${holder.id}`);
}

function isConflict(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === wrongRevision;
}

// The registry in memory. It follows the bucket, so a change takes effect within a second. If the
// bucket is missing or has lost projects, the known projects stay valid. No key counts as unknown
// in this case, because it may belong to a lost project.

import { isDeepStrictEqual } from "node:util";
import type { NatsConnection } from "@nats-io/nats-core";
import { firstProject } from "../../../platform/base/errors.ts";
import type { Log } from "../../../platform/base/log.ts";
import { bucketStream } from "../../../platform/nats/names.ts";
import type { MeteredProject, Project, ProjectLookup } from "../project.ts";
import { type KnownMeter, Meters } from "../quota/meter.ts";
import type { RuleCounts } from "../rules/rule-counts.ts";
import { RulesLoader } from "../rules/rules-loader.ts";
import { type BucketPlace, bucketName } from "./bucket.ts";
import { BucketFollower } from "./bucket-follower.ts";
import type { Clash } from "./key-map.ts";
import { type EntryNews, KnownProjects, type Reading } from "./known-projects.ts";
import { lossAdvice, nothingStored, type StoredEvents } from "./loss-mark.ts";

export interface RegistryOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Log;
  readonly signal?: AbortSignal | undefined;
  readonly pollMs?: number | undefined;
  readonly storedEvents?: () => Promise<StoredEvents>;
  /**
   * Returns the error with which the wait for the first reading must end. Returns undefined if it
   * is useful to wait longer.
   */
  readonly refusal?: (error: unknown) => Error | undefined;
  /** Returns the time of the events, in epoch milliseconds. Default: the system clock. */
  readonly wallMs?: (() => number) | undefined;
}

const pollMsDefault = 500;
const warnedPairsMax = 5;
/** Maximum time that the start waits for the rules of all projects. */
const rulesWaitMsMax = 5_000;
const noProjects = `there is no project yet: every request gets 401; add a project with ${firstProject}`;

/**
 * Waits until the projects have been read, or are known to be lost. Rejects if the signal aborts,
 * if NATS rejects the reading permanently, or if the connection is closed.
 */
export async function openRegistry(options: RegistryOptions): Promise<Registry> {
  const registry = new Registry(options);
  await registry.opened;
  return registry;
}

function changesOf(before: Project | undefined, after: Project | undefined): string[] {
  if (before === undefined) return after === undefined ? [] : ["added"];
  if (after === undefined) return ["removed"];
  const changed = (["name", "keys", "quota", "rulesVersion"] as const)
    .filter((field) => !isDeepStrictEqual(before[field], after[field]))
    .map((field) => (field === "rulesVersion" ? "rules" : field));
  const isSame = before.enabled === after.enabled;
  return isSame ? changed : [...changed, after.enabled ? "enabled" : "disabled"];
}

export class Registry implements ProjectLookup {
  readonly #log: Log;
  readonly #stream: string;
  readonly #meters = new Meters({ monotonicMs: () => performance.now() });
  readonly #rules: RulesLoader;
  readonly #known: KnownProjects;
  readonly #follower: BucketFollower;
  readonly #followed: Promise<void>;
  readonly #firstReading = Promise.withResolvers<void>();
  #isReady = false;
  #bucketFault: string | undefined;
  #isFaultLogged = false;
  readonly opened: Promise<void>;

  constructor(options: RegistryOptions) {
    const { log, prefix, signal, wallMs = () => Date.now() } = options;
    this.#log = log;
    this.#stream = bucketStream(bucketName(prefix));
    this.#rules = new RulesLoader({
      ...options,
      wallMs,
      onLoaded: (projectId) => this.#known.renew(projectId),
    });
    this.#known = new KnownProjects({
      onClash: (clash) => this.#logClash(clash),
      onDeleted: (projectId) => this.#forget(projectId),
      metered: (project) => this.#metered(project),
    });
    this.#follower = new BucketFollower({
      ...options,
      pollMs: options.pollMs ?? pollMsDefault,
      storedEvents: options.storedEvents ?? (async () => nothingStored),
      knowsProjects: () => this.#known.size > 0 && !this.#known.lacksUnknown,
      onMissing: () => this.#bucketMissing(),
      onRead: (reading) => this.#takeWhole(reading),
      onFailure: (error) => this.#failed(options.refusal?.(error)),
      onChange: (key, news) => this.#takeChange(key, news),
    });
    this.#followed = this.#follow();
    this.opened = this.#open(signal);
  }

  get projectsKnown(): number {
    return this.#known.size;
  }

  /** Number of projects whose current rules this gateway cannot use. */
  get rulesUnusable(): number {
    return this.#rules.faulty;
  }

  /** Whether the rules of any project read the User-Agent of requests. */
  get readsUserAgent(): boolean {
    return this.#rules.readsUserAgent;
  }

  /** The counters of the rules and schemas of all projects. */
  get ruleCounts(): Pick<RuleCounts, "ruleSamples" | "schemaSamples"> {
    return this.#rules.counts;
  }

  streamShareOf(projectId: string): number | undefined {
    return this.#known.byId(projectId)?.quota?.streamShare;
  }

  get fault(): string | undefined {
    const found = this.#bucketFault ?? (this.#isReady ? this.#known.fault : undefined);
    return found === undefined
      ? undefined
      : `the project registry, stream ${this.#stream}, is inconsistent: ${found}`;
  }

  get warnings(): readonly string[] {
    const clashes = this.#known.keys.contestedPairs.map(
      ([one, other]) =>
        `projects ${one} and ${other} have the same key: its events are rejected (503)`,
    );
    const more = clashes.length - warnedPairsMax;
    return [
      ...(this.#isReady && this.hasNone ? [noProjects] : []),
      ...(this.#isReady && !this.#follower.isConfirmed
        ? ["the project registry does not answer: unknown keys get 503"]
        : []),
      ...this.#known.damaged.map(
        (entry) => `registry entry ${entry} cannot be read: unknown keys get 503`,
      ),
      ...this.#known.unowned.map(
        (entry) => `registry entry ${entry} has no valid project id: keys in it get 401`,
      ),
      ...this.#rules.warnings,
      ...clashes.slice(0, warnedPairsMax),
      ...(more > 0 ? [`and ${more} more pairs of projects`] : []),
    ];
  }

  get hasNone(): boolean {
    return this.#known.size === 0 && this.fault === undefined && !this.#known.hasDamaged;
  }

  /**
   * A Map uses a hash with a random seed, so the time of a lookup reveals nothing about the keys.
   */
  byKey(key: string): MeteredProject | undefined {
    const project = this.#known.keys.get(key);
    return project !== undefined && this.#lacksRules(project) ? undefined : project;
  }

  refusalOf(key: string): string | undefined {
    if (this.#known.keys.get(key) !== undefined)
      return "The rules of the project have not been loaded, and its events must not be stored without them";
    if (this.#known.keys.isContested(key)) return "More than one project has this API key";
    if (!this.#isReady) return "The project registry has not been read yet";
    if (this.fault !== undefined)
      return "The project registry is inconsistent: it may lack the key";
    if (this.#known.hasDamaged)
      return "An entry of the project registry cannot be read: it may contain the key";
    return this.#follower.isConfirmed
      ? undefined
      : "The project registry does not answer: the key may be new";
  }

  has(projectId: string): boolean {
    return this.#known.byId(projectId) !== undefined;
  }

  meters(): Iterable<KnownMeter> {
    return [...this.#meters.all(), ...this.#meters.takeEvicted()];
  }

  async close(): Promise<void> {
    this.#follower.close();
    await this.#followed;
    await this.#rules.close();
  }

  async #open(signal: AbortSignal | undefined): Promise<void> {
    const { promise, reject } = this.#firstReading;
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    if (signal?.aborted) reject(signal.reason);
    try {
      await promise;
    } catch (error) {
      void this.close();
      throw error;
    }
    await this.#rules.settled(rulesWaitMsMax);
    this.#log.info({ projects: this.#known.size }, "project registry: read");
    if (this.hasNone) this.#log.warn({}, `project registry: ${noProjects}`);
  }

  async #follow(): Promise<void> {
    await this.#follower.follow();
    const closed = new Error("cannot read the project registry: the connection is closed");
    this.#firstReading.reject(closed);
  }

  #failed(refusal: Error | undefined): void {
    if (refusal !== undefined) this.#firstReading.reject(refusal);
  }

  #metered(project: Project): MeteredProject {
    const meter = this.#meters.of(project.id);
    meter.setQuota(project.quota);
    this.#rules.want(project.id, project.rulesVersion);
    return { ...project, meter, rules: this.#rules.rulesOf(project.id) };
  }

  /** Whether the project has rules, but this process has no usable version. */
  #lacksRules({ id, enabled, rules }: MeteredProject): boolean {
    return rules === undefined && enabled && this.#rules.needsRules(id);
  }

  #forget(projectId: string): void {
    this.#meters.leave(projectId);
    this.#rules.forget(projectId);
  }

  #bucketMissing(): void {
    this.#known.bucketMissing();
    const { size } = this.#known;
    const projects = size === 1 ? "1 project" : `${size} projects`;
    const lost = size === 0 ? "" : `; this gateway still knows ${projects} of it`;
    this.#bucketFault = `it no longer exists${lost}; ${lossAdvice}`;
    this.#readingDone();
  }

  #takeWhole(reading: Reading): void {
    this.#bucketFault = undefined;
    const { entries, withRules = new Set<string>() } = reading;
    const isRemoved = (projectId: string) => entries.get(projectId)?.kind === "deleted";
    this.#rules.takeStored(new Set([...withRules].filter((id) => !isRemoved(id))));
    this.#known.takeWhole(reading);
    for (const projectId of withRules)
      if (this.#known.byId(projectId)?.rulesVersion === undefined) this.#known.renew(projectId);
    this.#readingDone();
  }

  #takeChange(key: string, news: EntryNews): void {
    const before = this.#known.byId(key);
    this.#known.take(key, news);
    if (news.kind === "deleted") this.#rules.forget(key);
    const changed = changesOf(before, this.#known.byId(key));
    if (changed.length > 0)
      this.#log.info({ project: key, changed, revision: news.revision }, "audit: project changed");
    if (this.#isFaultLogged) this.#judge();
  }

  #readingDone(): void {
    this.#isReady = true;
    this.#judge();
    this.#firstReading.resolve();
  }

  #judge(): void {
    const found = this.fault;
    const { missing, size } = this.#known;
    if (found !== undefined && !this.#isFaultLogged) {
      this.#log.error(
        { reason: found, missing, projects: size },
        "project registry: inconsistent; requests with unknown keys get 503",
      );
    }
    if (found === undefined && this.#isFaultLogged)
      this.#log.info({ projects: size }, "project registry: consistent again");
    this.#isFaultLogged = found !== undefined;
  }

  #logClash({ projects, isOver }: Clash): void {
    if (isOver) this.#log.info({ projects }, "project registry: projects no longer share a key");
    else
      this.#log.error(
        { projects },
        "project registry: two projects have the same key; its events are rejected until one project gets another key",
      );
  }
}

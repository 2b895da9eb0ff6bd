// The projects in memory: follows the bucket, so that a change counts within a second and a lookup
// is one Map read, whatever NATS is doing. A bucket that is gone, or holds less than what was read
// before, is an outage: the projects known before stay in use, and no key counts as unknown. Must
// not change projects.

import type { NatsConnection } from "@nats-io/nats-core";
import { firstProject } from "../../../platform/base/first-project.ts";
import type { Log } from "../../../platform/base/log.ts";
import { bucketStream } from "../../../platform/nats/names.ts";
import type { MeteredProject, Project, ProjectLookup } from "../project.ts";
import { type KnownMeter, Meters } from "../quota/meters.ts";
import { type BucketPlace, bucketName } from "./bucket.ts";
import { BucketFollower } from "./bucket-follower.ts";
import type { Clash } from "./key-map.ts";
import { type EntryNews, KnownProjects, type Reading } from "./known-projects.ts";
import { lossAdvice } from "./loss-mark.ts";
import { nothingStored, type StoredEvents } from "./stored-events.ts";

export interface RegistryOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Log;
  /** Ends the wait for the first reading when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** How often the bucket is asked for changes. Default 0.5 s. */
  readonly pollMs?: number | undefined;
  /**
   * What the streams say of projects. A registry that is read for the first time must have an entry
   * of each project with stored events, or it has lost that project. Default: no events are stored.
   */
  readonly storedEvents?: () => Promise<StoredEvents>;
  /** The error that ends the wait for the first reading, if `error` shows that waiting is vain. */
  readonly refusal?: (error: unknown) => Error | undefined;
}

const pollMsDefault = 500;
const warnedPairsMax = 5;
const noProjects = `there is no project: every request is answered 401; add one with ${firstProject}`;

/**
 * Fulfilled when the projects have been read once, however long that takes, or when it is known
 * that they were lost. Rejects when the signal aborts, when NATS refuses the reading for good, or
 * when the connection is closed before.
 */
export async function openRegistry(options: RegistryOptions): Promise<Registry> {
  const registry = new Registry(options);
  await registry.opened;
  return registry;
}

export class Registry implements ProjectLookup {
  readonly #log: Log;
  readonly #stream: string;
  readonly #meters = new Meters({ monotonicMs: () => performance.now() });
  readonly #known: KnownProjects;
  readonly #follower: BucketFollower;
  readonly #followed: Promise<void>;
  readonly #firstReading = Promise.withResolvers<void>();
  #isReady = false;
  /** That there is no bucket. Ends with the next whole reading. */
  #bucketFault: string | undefined;
  #isFaultLogged = false;
  readonly opened: Promise<void>;

  constructor(options: RegistryOptions) {
    const { log, prefix, signal } = options;
    this.#log = log;
    this.#stream = bucketStream(bucketName(prefix));
    this.#known = new KnownProjects({
      onClash: (clash) => this.#logClash(clash),
      onGone: (projectId) => this.#meters.leave(projectId),
      metered: (project) => this.#metered(project),
    });
    this.#follower = new BucketFollower({
      ...options,
      pollMs: options.pollMs ?? pollMsDefault,
      storedEvents: options.storedEvents ?? (async () => nothingStored),
      knowsProjects: () => this.#known.size > 0 && !this.#known.lacksUnknown,
      onGone: () => this.#takeLoss(),
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

  /** The project's own share of a stream in per cent; undefined if it has none. */
  streamShareOf(projectId: string): number | undefined {
    return this.#known.byId(projectId)?.quota?.streamShare;
  }

  /**
   * Why there may be projects that this process does not know, so that an operator has to act;
   * undefined when nothing is wrong.
   */
  get fault(): string | undefined {
    const found = this.#bucketFault ?? (this.#isReady ? this.#known.fault : undefined);
    return found === undefined
      ? undefined
      : `the project registry, stream ${this.#stream}, is not as it was: ${found}`;
  }

  /** What an operator should know, though events can be stored. */
  get warnings(): readonly string[] {
    const clashes = this.#known.keys.contestedPairs.map(
      ([one, other]) => `projects ${one} and ${other} claim one key: its events are refused (503)`,
    );
    const more = clashes.length - warnedPairsMax;
    return [
      ...(this.#isReady && this.hasNone ? [noProjects] : []),
      ...(this.#isReady && !this.#follower.isConfirmed
        ? ["the project registry does not answer: keys it might know get 503"]
        : []),
      ...this.#known.damaged.map(
        (entry) => `registry entry ${entry} cannot be read: keys that it might hold get 503`,
      ),
      ...this.#known.nobodys.map(
        (entry) => `registry entry ${entry} can be no project's: keys in it are answered 401`,
      ),
      ...clashes.slice(0, warnedPairsMax),
      ...(more > 0 ? [`and ${more} more pairs of projects`] : []),
    ];
  }

  get hasNone(): boolean {
    return this.#known.size === 0 && this.fault === undefined && !this.#known.hasDamaged;
  }

  /**
   * The time of a look-up does not tell how much of a key was right: a Map goes by a seeded hash of
   * the whole text.
   */
  byKey(key: string): MeteredProject | undefined {
    return this.#known.keys.get(key);
  }

  refusalOf(key: string): string | undefined {
    if (this.#known.keys.isContested(key)) return "More than one project claims this API key";
    if (!this.#isReady) return "The project registry has not been read yet";
    if (this.fault !== undefined)
      return "The project registry is in trouble: the key may be one of those it lacks";
    if (this.#known.hasDamaged)
      return "An entry of the project registry cannot be read: the key may be in it";
    return this.#follower.isConfirmed
      ? undefined
      : "The project registry does not answer: the key may be new";
  }

  /**
   * What each project has sent to this process. Those deleted lately are among them, and each that
   * was evicted is so once.
   */
  meters(): Iterable<KnownMeter> {
    return [...this.#meters.all(), ...this.#meters.takeEvicted()];
  }

  async close(): Promise<void> {
    this.#follower.close();
    await this.#followed;
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
    this.#log.info({ projects: this.#known.size }, "project registry read");
    if (this.hasNone) this.#log.warn({}, noProjects);
  }

  async #follow(): Promise<void> {
    await this.#follower.follow();
    const closed = new Error("read the project registry: the connection is closed");
    this.#firstReading.reject(closed);
  }

  #failed(refusal: Error | undefined): void {
    if (refusal !== undefined) this.#firstReading.reject(refusal);
  }

  #metered(project: Project): MeteredProject {
    const meter = this.#meters.of(project.id);
    meter.setQuota(project.quota);
    return { ...project, meter };
  }

  #takeLoss(): void {
    this.#known.bucketGone();
    const { size } = this.#known;
    const projects = size === 1 ? "the 1 project" : `the ${size} projects`;
    const whose = size === 0 ? "" : `, with ${projects} known from it`;
    this.#bucketFault = `it is gone${whose}; ${lossAdvice}`;
    this.#haveRead();
  }

  #takeWhole(reading: Reading): void {
    this.#bucketFault = undefined;
    this.#known.takeWhole(reading);
    this.#haveRead();
  }

  #takeChange(key: string, news: EntryNews): void {
    this.#known.take(key, news);
    if (this.#isFaultLogged) this.#judge();
  }

  /**
   * Called after a whole reading, or when the bucket is gone: from the first time on, requests may
   * be answered.
   */
  #haveRead(): void {
    this.#isReady = true;
    this.#judge();
    this.#firstReading.resolve();
  }

  /** Logs when a fault begins or ends. Called after anything that may do either. */
  #judge(): void {
    const found = this.fault;
    const { missing, size } = this.#known;
    if (found !== undefined && !this.#isFaultLogged) {
      this.#log.error(
        { reason: found, missing, projects: size },
        "the project registry is in doubt: the projects known before go on, other keys are answered 503",
      );
    }
    if (found === undefined && this.#isFaultLogged)
      this.#log.info({ projects: size }, "the project registry is whole again");
    this.#isFaultLogged = found !== undefined;
  }

  #logClash({ projects, isOver }: Clash): void {
    if (isOver) this.#log.info({ projects }, "no key is claimed by these two projects any more");
    else
      this.#log.error(
        { projects },
        "two projects claim one key: its events are refused until one of them gives it up",
      );
  }
}

// Loads the rules of projects and compiles them. A project keeps the version that it has until the
// next one is compiled.

import { Buffer } from "node:buffer";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted } from "../../../platform/base/retry.ts";
import { type CompiledRules, compileRules } from "../../../rules/compile.ts";
import type { CookielessContext } from "../../../rules/cookieless.ts";
import type { RulesFile } from "../../../rules/rules-file.ts";
import {
  type BucketPlace,
  bucketName,
  bucketReader,
  DamagedEntryError,
  openBucket,
  raiseReplicas,
} from "../registry/bucket.ts";
import { DailySalts } from "./daily-salts.ts";
import { RuleCounts } from "./rule-counts.ts";
import { readSecret, readVersion } from "./stored-versions.ts";

interface RulesLoaderOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Log;
  /** Returns the time of the events, in epoch milliseconds. */
  readonly wallMs: () => number;
  /** Called after the rules of a project have changed. */
  readonly onLoaded: (projectId: string) => void;
}

interface Wanted {
  /** Undefined if the registry entry has lost it. */
  readonly version: number | undefined;
  /** The rules in use, perhaps of an earlier version. */
  rules: CompiledRules | undefined;
  /** The text and the secret of the rules in use. A new bucket may have others under the number. */
  source: string | undefined;
  /** Why the version is not in use; undefined before the first try and afterwards. */
  fault: string | undefined;
}

/** A version that this release cannot use, even if it is read again. */
class UnusableRulesError extends Error {}

/** Number of versions that are read at the same time. */
const loadsAtOnce = 16;
const retryMsDefault = 1_000;
const faultsNamedMax = 5;
const noVersion =
  "its registry entry has no version, although the rules bucket has had rules of it";

export class RulesLoader {
  readonly #options: RulesLoaderOptions & { readonly retryMs?: number };
  readonly #wanted = new Map<string, Wanted>();
  /** The projects of which the rules bucket has had a version. */
  #stored: Set<string> = new Set();
  readonly #queue = new Set<string>();
  readonly #retrying = new Set<Wanted>();
  readonly #closing = new AbortController();
  readonly #loading = new Set<Promise<void>>();
  readonly salts: DailySalts;
  readonly counts = new RuleCounts();
  /** Whether the rules in use of any project read the User-Agent of requests. */
  readsUserAgent = false;
  #isPrepared = false;

  constructor(options: RulesLoaderOptions & { readonly retryMs?: number }) {
    this.#options = options;
    this.salts = new DailySalts(options);
  }

  /** Returns the rules to use for a project, or undefined or none is usable yet. */
  rulesOf(projectId: string): CompiledRules | undefined {
    return this.#wanted.get(projectId)?.rules;
  }

  /** Whether events of the project must not be stored without rules. */
  needsRules(projectId: string): boolean {
    return this.#wanted.has(projectId);
  }

  /**
   * Takes the projects of which the rules bucket has a version. Reads the wanted versions again,
   * because the bucket may have been recreated.
   */
  takeStored(projectIds: ReadonlySet<string>): void {
    this.#stored = new Set(projectIds);
    for (const [projectId, { version }] of this.#wanted) {
      this.#stored.add(projectId);
      if (version !== undefined) this.#enqueue(projectId);
    }
  }

  /** Starts to load a version. The rules in use stay until it is compiled. */
  want(projectId: string, version: number | undefined): void {
    const before = this.#wanted.get(projectId);
    if (version === undefined && !this.#stored.has(projectId)) return;
    if (before !== undefined && before.version === version) return;
    const { rules, source } = before ?? {};
    const wanted = { version, rules, source, fault: undefined };
    this.#wanted.set(projectId, wanted);
    this.#stored.add(projectId);
    if (version === undefined) this.#setFault(projectId, wanted, noVersion);
    else this.#enqueue(projectId);
  }

  /** Must be called only if the project was removed. */
  forget(projectId: string): void {
    this.#stored.delete(projectId);
    this.#wanted.delete(projectId);
    this.#queue.delete(projectId);
    this.salts.release(projectId);
    this.counts.forget(projectId);
    this.#findReaders();
  }

  /** Number of projects whose version in the registry is not in use here. */
  get faulty(): number {
    let count = 0;
    for (const { fault } of this.#wanted.values()) if (fault !== undefined) count++;
    return count;
  }

  get warnings(): readonly string[] {
    const found = [...this.#wanted].filter(([, { fault }]) => fault !== undefined);
    const more = found.length - faultsNamedMax;
    return [
      ...found.slice(0, faultsNamedMax).map(([projectId, wanted]) => warningOf(projectId, wanted)),
      ...(more > 0 ? [`and the rules of ${more} more projects`] : []),
    ];
  }

  /** Resolves when each wanted version has been tried, or after the time. */
  async settled(waitMsMax: number): Promise<void> {
    const late = pauseUntilAborted(waitMsMax, this.#closing.signal, { ref: false });
    const all = async () => {
      while (this.#loading.size > 0) await Promise.all(this.#loading);
    };
    await Promise.race([all(), late]);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#loading);
    await this.salts.close();
  }

  #enqueue(projectId: string): void {
    this.#queue.add(projectId);
    if (this.#loading.size >= loadsAtOnce) return;
    const loading: Promise<void> = this.#loadAll().finally(() => {
      this.#loading.delete(loading);
      const [next] = this.#queue;
      if (next !== undefined) this.#enqueue(next);
    });
    this.#loading.add(loading);
  }

  async #loadAll(): Promise<void> {
    for (const projectId of this.#queue) {
      this.#queue.delete(projectId);
      if (!this.#closing.signal.aborted) await this.#load(projectId);
    }
  }

  async #load(projectId: string): Promise<void> {
    const wanted = this.#wanted.get(projectId);
    if (wanted?.version === undefined) return;
    const { version } = wanted;
    const { log, onLoaded } = this.#options;
    try {
      const { rules, source } = await this.#compiled(projectId, version, wanted);
      // A newer version may be wanted meanwhile, or the project was removed.
      if (!this.#wanted.has(projectId)) this.salts.release(projectId);
      if (this.#wanted.get(projectId) !== wanted) return;
      const isNew = wanted.rules !== rules;
      if (isNew || wanted.fault !== undefined)
        log.info({ project: projectId, version }, "rules: in use");
      Object.assign(wanted, { rules, source, fault: undefined });
      this.#findReaders();
      if (isNew) onLoaded(projectId);
    } catch (error) {
      if (this.#wanted.get(projectId) !== wanted || this.#closing.signal.aborted) return;
      this.#setFault(projectId, wanted, (error as Error).message);
      const isFinal = error instanceof UnusableRulesError;
      if (!isFinal) void this.#retryLater(projectId, wanted);
    }
  }

  #findReaders(): void {
    this.readsUserAgent = false;
    for (const { rules } of this.#wanted.values())
      if (rules?.readsUserAgent === true) this.readsUserAgent = true;
  }

  #setFault(projectId: string, wanted: Wanted, reason: string): void {
    if (wanted.fault === reason) return;
    wanted.fault = reason;
    const { version } = wanted;
    this.#options.log.error(
      { project: projectId, version, reason },
      `rules: ${warningOf(projectId, wanted)}`,
    );
  }

  async #retryLater(projectId: string, wanted: Wanted): Promise<void> {
    if (this.#retrying.has(wanted)) return;
    this.#retrying.add(wanted);
    const { retryMs = retryMsDefault } = this.#options;
    await pauseUntilAborted(retryMs, this.#closing.signal, { ref: false });
    this.#retrying.delete(wanted);
    if (!this.#closing.signal.aborted && this.#wanted.get(projectId) === wanted)
      this.#enqueue(projectId);
  }

  /** Returns the rules in use if neither their text, their secret nor their number has changed. */
  async #compiled(
    projectId: string,
    version: number,
    before: Wanted,
  ): Promise<{ readonly rules: CompiledRules; readonly source: string }> {
    const { connection, ...place } = this.#options;
    const at = { ...place, id: projectId, version };
    await this.#prepareBucket();
    const [found, secret] = await Promise.all([
      readVersion(connection, at).catch((error: unknown) => {
        throw error instanceof DamagedEntryError ? new UnusableRulesError(error.message) : error;
      }),
      readSecret(connection, at),
    ]);
    if (found === undefined) throw new Error("the rules bucket has no such version");
    if (secret === undefined) throw new Error("the rules bucket has no secret of the project");
    const source = `${found.sha256} ${Buffer.from(secret).toString("hex")}`;
    const { rules } = before;
    if (rules?.version === version && before.source === source) return { rules, source };
    // Loaded only if a project has rules.
    const { parseStoredRules } = await import("../../../rules/parse.ts");
    const parsed = await parseStoredRules(found.text);
    if ("errors" in parsed) {
      const { line, column, message } = parsed.errors[0]!;
      throw new UnusableRulesError(
        `this release cannot read it: line ${line}, column ${column}: ${message}`,
      );
    }
    const { privacy } = parsed.rules;
    if (privacy.ip === "hash" || privacy.cookieless) await this.salts.provide(projectId);
    else this.salts.release(projectId);
    const saltOf = (day: number) => this.salts.saltOf(projectId, day);
    const cookieless = await cookielessContext(projectId, parsed.rules);
    const counters = this.counts.of(projectId);
    const context = { version, secret, saltOf, cookieless, counters };
    return { rules: compileRules(parsed.rules, context), source };
  }

  /** Creates the mirror of the hub's bucket on a leaf node, and raises the replicas elsewhere. */
  async #prepareBucket(): Promise<void> {
    const { connection, log, ...place } = this.#options;
    if (this.#isPrepared) return;
    if (place.hubDomain !== undefined) await openBucket(connection, { ...place, kind: "rules" });
    const state = await (await bucketReader(connection, bucketName(place.prefix, "rules"))).state();
    if (state === undefined) throw new Error("there is no rules bucket");
    await raiseReplicas(connection, { config: state.config, replicas: place.replicas, log });
    this.#isPrepared = true;
  }
}

/** Returns what the compilation needs for `cookieless`, or undefined if the rules do not have it. */
export async function cookielessContext(
  projectId: string,
  { privacy }: RulesFile,
): Promise<CookielessContext | undefined> {
  if (!privacy.cookieless) return undefined;
  const { rootDomainOf } = await import("../../../rules/root-domain.ts");
  return { projectId, rootDomainOf };
}

function warningOf(projectId: string, { version, rules, fault }: Wanted): string {
  const effect =
    rules === undefined
      ? "its events get 503"
      : `its events are handled by version ${rules.version}`;
  const which = version === undefined ? "the current version" : `version ${version}`;
  const fix =
    version === undefined
      ? `: apply its file with \`penstock rules apply ${projectId} FILE\`, or its last version with \`penstock rules rollback\``
      : "";
  return `${which} of the rules of project ${projectId} is not in use: ${fault}; ${effect}${fix}`;
}

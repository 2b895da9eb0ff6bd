// Compares the answers to the requests with the stored records and the rejected lane. For each
// request there must be one version of the rules that explains its answer and its records.

import { jetstreamManager } from "@nats-io/jetstream";
import { readMessages } from "../../../bench/load/stored.ts";
import { linesOf, type RejectedItem } from "../../../src/gateway/quarantine/rejected-item.ts";
import type { Lane } from "../../../src/platform/base/lane.ts";
import { lanes, rejectedLane } from "../../../src/platform/nats/names.ts";
import { connectReader } from "../connect-reader.ts";
import type { Store } from "../scenario.ts";
import type { KnownVersion } from "./rule-changer.ts";
import {
  type Expected,
  expectedOf,
  hasFixedMembers,
  numberOf,
  recordText,
  ruledProject,
  textOf,
} from "./ruled-events.ts";
import type { Attempt, RuledRequest } from "./ruled-senders.ts";
import { probeId } from "./rules-texts.ts";

/** Events by their end. `acknowledged` is the sum of stored, dropped and quarantined. */
export interface RulesTotals {
  acknowledged: number;
  stored: number;
  dropped: number;
  quarantined: number;
  /** Quarantined events that the rejected lane does not have. */
  notInLane: number;
  /** Additional copies of events whose requests were sent more than once. */
  storedAgain: number;
  /** Events of requests that never got a 200. */
  unanswered: number;
  /** Versions that changed or filtered an event of a request with one attempt. */
  versionsUsed: number;
}

interface LedgerOptions {
  readonly requests: readonly RuledRequest[];
  readonly versions: ReadonlyMap<number, KnownVersion>;
  readonly secret: Uint8Array;
  /** The version that the gateway used for requests after a time; undefined if not known. */
  readonly last: { readonly version: number; readonly fromMs: number } | undefined;
  /** Whether one process answers all requests, so that no version is used after a newer one. */
  readonly isOneProcess: boolean;
}

const faultsMax = 10;

export class RulesLedger {
  readonly #options: LedgerOptions;
  readonly #ascending: readonly KnownVersion[];
  readonly #requestOf: RuledRequest[] = [];
  /** By the number of the event: the versions in its records, 0 without one. */
  readonly #copies = new Map<number, number[]>();
  readonly #rejected = new Map<number, RejectedItem[]>();
  readonly #used: { readonly answeredMs: number; version: number }[] = [];
  readonly faults: string[] = [];
  readonly totals: RulesTotals = {
    acknowledged: 0,
    stored: 0,
    dropped: 0,
    quarantined: 0,
    notInLane: 0,
    storedAgain: 0,
    unanswered: 0,
    versionsUsed: 0,
  };

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#ascending = [...options.versions.values()].sort((a, b) => a.version - b.version);
    for (const request of options.requests)
      for (let at = 0; at < request.count; at++) this.#requestOf[request.first + at] = request;
  }

  /** Compares everything that was taken with the answers. */
  settle(): void {
    this.#noteUsed();
    for (const request of this.#options.requests) this.#settleRequest(request);
  }

  #fault(text: string): void {
    if (this.faults.length < faultsMax) this.faults.push(`rules: ${text}`);
  }

  /** Takes the lines of a message. */
  take(lane: Lane | typeof rejectedLane, text: string): void {
    if (lane !== rejectedLane) this.#takeRecords(text);
    else for (const line of linesOf(text)) this.#takeRejected(line);
  }

  async read(store: Store): Promise<void> {
    const connection = await connectReader(store);
    try {
      const manager = await jetstreamManager(connection);
      for (const lane of [...lanes, rejectedLane] as const) {
        const subject = `penstock.${lane}.*.*`;
        for await (const stream of manager.streams.names(subject)) {
          const mark = { stream, lastSequence: 0, subject };
          await readMessages(connection, mark, ({ data }) =>
            this.take(lane, Buffer.from(data).toString("utf8")),
          );
        }
      }
    } finally {
      await connection.close();
    }
  }

  #takeRecords(text: string): void {
    for (const line of text.split("\n")) {
      if (!line.includes(`"project_id":"${ruledProject}"`)) continue;
      const record = JSON.parse(line) as Record<string, unknown>;
      if (record["distinct_id"] === probeId) continue;
      const number = numberOf(String(record["uuid"]));
      const request = number === undefined ? undefined : this.#requestOf[number];
      if (number === undefined || request === undefined)
        this.#fault(`a record that was not sent: ${line.slice(0, 200)}`);
      else this.#takeRecord(record, { number, form: request.form });
    }
  }

  #takeRecord(
    record: Readonly<Record<string, unknown>>,
    event: { readonly number: number; readonly form: RuledRequest["form"] },
  ): void {
    const version = (record["rules"] as number | undefined) ?? 0;
    const copies = this.#copies.get(event.number);
    if (copies === undefined) this.#copies.set(event.number, [version]);
    else copies.push(version);
    const what = `event ${event.number} (${event.form})`;
    const text = recordText(record);
    const mayBe = version === 0 ? this.#ascending.map((one) => one.version) : [version];
    if (!hasFixedMembers(record, event)) this.#fault(`${what} is not as sent`);
    else if (version !== 0 && !this.#options.versions.has(version))
      this.#fault(`${what} has version ${version}, which never existed`);
    else if (!mayBe.some((one) => this.#makes(text, event.number, one, version !== 0)))
      this.#fault(
        `${what} is not what ${version === 0 ? "any version" : `version ${version}`} makes of it: ${text}`,
      );
  }

  /** Returns whether a version makes this record of an event. */
  #makes(text: string, number: number, version: number, isChanged: boolean): boolean {
    const expected = this.#expectedOf(number, version);
    return (
      expected.outcome === "stored" && expected.isChanged === isChanged && expected.record === text
    );
  }

  #takeRejected(line: RejectedItem): void {
    if (line.project_id !== ruledProject) return;
    const { uuid } = JSON.parse(line.item) as { readonly uuid: string };
    const number = numberOf(uuid);
    const request = number === undefined ? undefined : this.#requestOf[number];
    if (number === undefined || request === undefined) {
      this.#fault(`a rejected item that was not sent: ${line.item.slice(0, 200)}`);
      return;
    }
    if (!line.item.includes(textOf(number, request.form).slice(1)))
      this.#fault(`rejected item ${number} is not as sent: ${line.item}`);
    const lines = this.#rejected.get(number);
    if (lines === undefined) this.#rejected.set(number, [line]);
    else lines.push(line);
  }

  #expectedOf(number: number, version: number): Expected {
    const { file } = this.#options.versions.get(version)!;
    const { form } = this.#requestOf[number]!;
    return expectedOf(file, this.#options.secret, { number, form });
  }

  /** The versions that are certain, because a request has one attempt and its records name it. */
  #noteUsed(): void {
    const { requests, last, isOneProcess } = this.#options;
    const certain = requests.flatMap((request) => {
      const [attempt, ...more] = request.attempts;
      const version = this.#versionsOf(request).find((one) => one !== 0);
      return attempt?.verdict === "answered" && more.length === 0 && version !== undefined
        ? [{ attempt, version }]
        : [];
    });
    this.totals.versionsUsed = new Set(certain.map(({ version }) => version)).size;
    if (!isOneProcess) return;
    this.#used.push(...certain.map(({ attempt, version }) => ({ ...attempt, version })));
    if (last !== undefined) this.#used.push({ answeredMs: last.fromMs, version: last.version });
    this.#used.sort((one, other) => one.answeredMs - other.answeredMs);
    let newest = 0;
    for (const one of this.#used) {
      newest = Math.max(newest, one.version);
      one.version = newest;
    }
    for (const { attempt, version } of certain) {
      const floor = this.#floorAt(attempt.sentMs);
      if (version < floor)
        this.#fault(`version ${version} was used after version ${floor} had been used`);
    }
  }

  /** Returns the newest version that was used by a request which was answered before a time. */
  #floorAt(sentMs: number): number {
    let [low, high] = [0, this.#used.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#used[middle]!.answeredMs < sentMs) low = middle + 1;
      else high = middle;
    }
    return this.#used[low - 1]?.version ?? 0;
  }

  #versionsOf({ first, count }: RuledRequest): readonly number[] {
    return Array.from({ length: count }, (_, at) => this.#copies.get(first + at) ?? []).flat();
  }

  #settleRequest(request: RuledRequest): void {
    const { attempts, first, count, form } = request;
    const last = attempts.at(-1);
    const what = `request ${form} ${first}, attempts ${attempts.map(({ label }) => label).join(", ")}`;
    const mayHaveStored = attempts.filter(({ verdict }) => verdict !== "refused").length;
    for (let number = first; number < first + count; number++) {
      const copies = this.#copies.get(number) ?? [];
      this.totals.storedAgain += Math.max(0, copies.length - 1);
      if (copies.length > mayHaveStored)
        this.#fault(`${what}: event ${number} is stored ${copies.length} times`);
      // A retry of a large request under the same version has the same message ids.
      if (form === "large" && new Set(copies).size < copies.length && !copies.includes(0))
        this.#fault(`${what}: event ${number} is stored twice by version ${copies.join()}`);
    }
    if (last?.verdict !== "answered") {
      this.totals.unanswered += count;
      return;
    }
    const candidates = this.#candidatesOf(request, last);
    let why = "no version could be in use";
    for (const version of candidates) {
      const reason = this.#whyNot(request, last, version);
      if (reason === undefined) {
        this.#count(request, version);
        return;
      }
      why = `not by version ${version}: ${reason}`;
    }
    const found = { accepted: last.accepted, filtered: last.filtered, results: last.results };
    this.#fault(`${what}: no version explains the answer ${JSON.stringify(found)}: ${why}`);
  }

  /** Returns the versions that may have been in use for the last attempt, oldest first. */
  #candidatesOf(request: RuledRequest, { sentMs, answeredMs }: Attempt): readonly number[] {
    const floor = this.#floorAt(sentMs);
    const seen = new Set(this.#versionsOf(request).filter((version) => version !== 0));
    return this.#ascending
      .filter(
        ({ version, atMs }) =>
          version >= floor &&
          atMs <= answeredMs &&
          (request.attempts.length > 1 ||
            seen.size === 0 ||
            (seen.size === 1 && seen.has(version))),
      )
      .map(({ version }) => version);
  }

  /** Returns why a version does not explain the last answer; undefined if it does. */
  #whyNot(request: RuledRequest, last: Attempt, version: number): string | undefined {
    const { first, count, attempts } = request;
    const isAlone = attempts.length === 1;
    let accepted = 0;
    for (let at = 0; at < count; at++) {
      const number = first + at;
      const { outcome, isChanged } = this.#expectedOf(number, version);
      const copies = this.#copies.get(number) ?? [];
      const rejected = this.#rejected.get(number) ?? [];
      const result = last.results?.[at];
      if (outcome === "stored") {
        accepted++;
        if (copies.length === 0) return `event ${number} is lost`;
        if (isAlone && copies[0] !== (isChanged ? version : 0))
          return `event ${number} has version ${copies[0]}`;
      } else if (isAlone && copies.length > 0) return `event ${number} (${outcome}) is stored`;
      if (isAlone && outcome !== "quarantined" && rejected.length > 0)
        return `event ${number} (${outcome}) is in the rejected lane`;
      if (
        rejected.length > attempts.length ||
        (isAlone && rejected.some((one) => one.rules !== version))
      )
        return `event ${number} is in the rejected lane ${rejected.length} times`;
      if (result !== undefined && !resultsOf[outcome].includes(result))
        return `event ${number} (${outcome}) has the result ${result}`;
    }
    return last.accepted === accepted && last.filtered === count - accepted
      ? undefined
      : `${accepted} events are accepted`;
  }

  #count({ first, count }: RuledRequest, version: number): void {
    const { totals } = this;
    totals.acknowledged += count;
    for (let number = first; number < first + count; number++) {
      const { outcome } = this.#expectedOf(number, version);
      totals[outcome]++;
      if (outcome === "quarantined" && !this.#rejected.has(number)) totals.notInLane++;
    }
  }
}

const resultsOf = {
  stored: ["ok", "warning"],
  dropped: ["drop dropped_by_rule"],
  quarantined: ["drop quarantined"],
};

// Sends the load's requests and records every answer. For each sender, also records the start of
// the current unbroken run of 200 answers.

import { setTimeout as delay } from "node:timers/promises";
import { type Answer, type Connection, createConnection } from "../../bench/load/client.ts";
import type { Events, LoadName } from "./event-kinds.ts";
import { createSenders, type FaultRequest, type LoadShape, type Sender } from "./senders.ts";

interface DriverOptions {
  /** The gateways' URLs. Each sender uses one of them, in turn. */
  readonly urls: readonly string[];
  readonly events: Events;
  readonly load: LoadName;
  readonly shape: LoadShape;
  readonly mayLoseConnections: boolean;
  readonly mayRefuse: boolean;
  /**
   * A longer interval between 200 answers of a sender breaks a run, unless the sender had similar
   * pauses before the fault.
   */
  readonly breakMs: number;
}

interface DriverCounts {
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  readonly answers: ReadonlyMap<string, number>;
  /**
   * When requests without an answer were written to their sockets, in ms since the epoch. Excludes
   * refused connections.
   */
  readonly lostMs: readonly number[];
}

export interface Driver {
  readonly counts: DriverCounts;
  readonly strange: readonly string[];
  acknowledged(events: number): Promise<void>;
  untilRefused(label: string): Promise<void>;
  /**
   * Must be called when the fault begins. Until the fault has ended, rejections do not break a run.
   */
  faultBegun(): void;
  /**
   * Must be called when the fault has ended. From then on, a rejected request ends the current run
   * of 200 answers.
   */
  faultEnded(): void;
  /**
   * The time from the fault's end until every steady sender gets only 200 answers for at least
   * `settledMs`. undefined if this does not happen within `withinMs`.
   */
  recovered(settledMs: number, withinMs: number): Promise<number | undefined>;
  stop(): Promise<void>;
}

interface Row {
  sinceMs: number;
  lastMs: number;
}

const answerMsMax = 30_000;
const refusedPauseMs = 50;
const unknownPauseMs = 100;
const retriesMax = 20;
const calmGapFactor = 2;
const strangeMax = 20;
const pollMs = 20;
const lostConnection = /^error (ECONNREFUSED|ECONNRESET|EPIPE|UND_ERR_SOCKET)$/;

export function startDriver(options: DriverOptions): Driver {
  const { events, shape } = options;
  const rows = new Map<string, Row>();
  const answers = new Map<string, number>();
  const strange = new Set<string>();
  const lostMs: number[] = [];
  const counts = { acknowledged: 0, refused: 0, unknown: 0, answers, lostMs };
  const stopping = new AbortController();
  let faultEndedMs = Number.POSITIVE_INFINITY;
  let calm = true;
  let calmGapMsMax = 0;

  function breakMs(): number {
    return Math.max(options.breakMs, calmGapFactor * calmGapMsMax);
  }

  async function run(sender: Sender, index: number): Promise<void> {
    const url = options.urls[index % options.urls.length]!;
    if (sender.steady) rows.set(sender.name, { sinceMs: Number.POSITIVE_INFINITY, lastMs: 0 });
    const connections = new Map<string, Connection>();
    try {
      while (!stopping.signal.aborted) {
        await converse(sender, url, connections);
        if (sender.pauseMs > 0) await pause(sender.pauseMs);
      }
    } finally {
      for (const connection of connections.values()) connection.close();
    }
  }

  async function converse(
    sender: Sender,
    url: string,
    connections: Map<string, Connection>,
  ): Promise<void> {
    const request = sender.next();
    const connection = connectionFor(request, url, connections);
    let onceUnknown = false;
    for (let tries = 0; tries <= retriesMax; tries++) {
      const sentMs = performance.now();
      const answered = new Promise<Answer>((resolve) => connection.send(request.body, resolve));
      const writtenMs = Date.now();
      const answer = await answered;
      if (isLost(answer)) lostMs.push(writtenMs);
      judge(request, answer);
      const verdict = noteVerdict(request, answer);
      if (sender.steady) noteRow(sender.name, verdict === "acknowledged", sentMs);
      onceUnknown ||= verdict === "unknown";
      if (answer.label.startsWith("2") || answer.label.startsWith("4")) return;
      await pause(verdict === "unknown" ? unknownPauseMs : refusedPauseMs);
      if (!onceUnknown || !sender.retries || stopping.signal.aborted) return;
    }
  }

  function noteVerdict(
    { kind, first, events: count, bad, expected }: FaultRequest,
    { verdict, label }: Answer,
  ) {
    for (const number of bad ?? []) events.of.bad.ledger.note(number, 1, "refused");
    if (count > 0) kind.ledger.note(first, count, verdict);
    if (verdict === "acknowledged") counts.acknowledged += count;
    else if (verdict === "unknown") counts.unknown++;
    else if (label !== expected) counts.refused++;
    return verdict;
  }

  function noteRow(name: string, acknowledged: boolean, sentMs: number): void {
    const row = rows.get(name)!;
    const now = performance.now();
    if (acknowledged) {
      if (calm && row.lastMs > 0) calmGapMsMax = Math.max(calmGapMsMax, now - row.lastMs);
      if (now - row.lastMs > breakMs() || row.sinceMs === Number.POSITIVE_INFINITY)
        row.sinceMs = now;
      row.lastMs = now;
    } else if (sentMs >= faultEndedMs) {
      row.sinceMs = Number.POSITIVE_INFINITY;
    }
  }

  function judge({ expected }: FaultRequest, answer: Answer): void {
    const { label, retryAfter } = answer;
    // On a busy machine the gateway reads the registry late. Until then, an unknown key may be a
    // new key.
    const isEarly = expected === "401 unknown_api_key" && label === "503 unavailable";
    if (isEarly && !options.mayRefuse) return;
    answers.set(label, (answers.get(label) ?? 0) + 1);
    if (label === expected) return;
    if (lostConnection.test(label) && options.mayLoseConnections) return;
    if (label.startsWith("503 ") && options.mayRefuse) {
      // Retry-After grows with the outage, to at most a minute.
      if (/^([1-9]|[1-5]\d|60)$/.test(retryAfter ?? "")) return;
      addStrange(`${label} with Retry-After "${retryAfter}"`);
      return;
    }
    addStrange(`${label}, not ${expected}`);
  }

  function addStrange(text: string): void {
    if (strange.size < strangeMax) strange.add(text);
  }

  function connectionFor(
    { gzip, events: batch, kind }: FaultRequest,
    url: string,
    connections: Map<string, Connection>,
  ): Connection {
    const path = kind.kind === "single" ? "/capture/" : "/batch/";
    const name = `${path} ${gzip} ${batch}`;
    const known = connections.get(name);
    if (known !== undefined) return known;
    const made = createConnection({
      url: new URL(path, url),
      gzip,
      timeoutMs: answerMsMax,
      batch,
    });
    connections.set(name, made);
    return made;
  }

  async function pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: stopping.signal }).catch(() => {});
  }

  const senders = createSenders(events, options.load, shape);
  const running = Promise.all(senders.map(run));
  running.catch(() => {});

  function answersLike(start: string): number {
    return [...answers].reduce(
      (sum, [label, count]) => sum + (label.startsWith(start) ? count : 0),
      0,
    );
  }

  function recoveryMs(settledMs: number): number | undefined {
    const now = performance.now();
    let latestMs = faultEndedMs;
    for (const { sinceMs, lastMs } of rows.values()) {
      if (now - lastMs > breakMs() || !(now - Math.max(sinceMs, faultEndedMs) >= settledMs))
        return undefined;
      latestMs = Math.max(latestMs, sinceMs);
    }
    return latestMs - faultEndedMs;
  }

  return {
    counts,
    get strange() {
      return [...strange];
    },
    async acknowledged(more) {
      const wanted = counts.acknowledged + more;
      const reached = await pollUntil(
        () => counts.acknowledged >= wanted || undefined,
        answerMsMax,
      );
      if (reached === undefined)
        throw new Error(
          `drive load: ${more} more events were not acknowledged in ${answerMsMax} ms`,
        );
    },
    async untilRefused(label) {
      const before = answersLike(label);
      const reached = await pollUntil(() => answersLike(label) > before || undefined, answerMsMax);
      if (reached === undefined)
        throw new Error(`drive load: no answer "${label}" in ${answerMsMax} ms`);
    },
    faultBegun() {
      calm = false;
      faultEndedMs = Number.POSITIVE_INFINITY;
    },
    faultEnded() {
      faultEndedMs = performance.now();
    },
    async recovered(settledMs, withinMs) {
      const foundMs = await pollUntil(() => recoveryMs(settledMs), withinMs);
      calm = true;
      calmGapMsMax = 0;
      return foundMs;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function isLost({ label }: Answer): boolean {
  return label.startsWith("error ") && label !== "error ECONNREFUSED";
}

async function pollUntil<T>(look: () => T | undefined, timeoutMs: number): Promise<T | undefined> {
  const deadline = performance.now() + timeoutMs;
  for (let found = look(); ; found = look()) {
    if (found !== undefined || performance.now() > deadline) return found;
    await delay(pollMs);
  }
}

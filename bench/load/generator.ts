// The open loop of one thread: a request is sent when it is due, even if earlier requests were not
// answered. Latency is measured from the time at which the request was due, so that it includes
// delays by a stalled gateway (coordinated omission).

import type { Bodies } from "./bodies.ts";
import type { Answer, Connection } from "./client.ts";
import type { Ledger } from "./ledger.ts";
import { createBacklog, type Schedule } from "./schedule.ts";

export interface Counts {
  due: number;
  sent: number;
  late: number;
  /** Requests not sent, because the backlog was full or the run ended first. */
  notSent: number;
  acknowledged: number;
  retries: number;
  unanswered: number;
  backlog: number;
  plainBytes: number;
  bodyBytes: number;
}

interface Generator {
  readonly counts: Counts;
  readonly answers: ReadonlyMap<string, number>;
  run(): Promise<void>;
  stop(): void;
}

interface GeneratorOptions {
  readonly schedule: Schedule;
  readonly connections: readonly Connection[];
  readonly bodies: Bodies;
  readonly batch: number;
  readonly backlogMax: number;
  readonly graceMs: number;
  readonly retry: boolean;
  /** The state of each event; undefined if stored events are not checked. */
  readonly ledger: Ledger | undefined;
  readonly nowMs: () => number;
  readonly wallClockMs: number;
  readonly timeoutMs: number;
  readonly warmUpRequests: number;
  /**
   * Called for each acknowledged request with two times in milliseconds: since the request was due,
   * and since it was sent.
   */
  readonly onAcknowledged: (fromDueMs: number, fromSentMs: number) => void;
}

const tickMs = 1;
// Requests with at least this interval are sent exactly when they are due. Node's timers have a
// resolution of a millisecond, so a busy loop waits for the rest.
const exactFromIntervalMs = 4;
const cutAfterMs = 1_000;

export function noCounts(): Counts {
  return {
    due: 0,
    sent: 0,
    late: 0,
    notSent: 0,
    acknowledged: 0,
    retries: 0,
    unanswered: 0,
    backlog: 0,
    plainBytes: 0,
    bodyBytes: 0,
  };
}

export function createGenerator(options: GeneratorOptions): Generator {
  const { schedule, connections, bodies, batch, ledger, nowMs } = options;
  const counts = noCounts();
  const answers = new Map<string, number>();
  const backlog = createBacklog(options.backlogMax);
  const free = createBacklog(connections.length);
  for (const index of connections.keys()) free.push(index);
  const waiting = new Map<number, NodeJS.Timeout>();
  const sentBefore = new Set<number>();
  let dueUntil = schedule.count;
  let open = 0;
  let ended = false;
  let { retry } = options;
  let tickTimer: NodeJS.Timeout | undefined;
  let endTimer: NodeJS.Timeout | undefined;
  let running = false;
  let finish = (): void => {};

  function offerDue(): void {
    const now = nowMs();
    while (counts.due < dueUntil && schedule.dueAtMs(counts.due) <= now) offer(counts.due++);
  }

  function offer(index: number): void {
    const connection = free.shift();
    if (connection !== undefined) {
      send(index, connection);
    } else if (backlog.push(index)) {
      if (!sentBefore.has(index)) counts.late += 1;
      counts.backlog = backlog.length;
    } else if (!sentBefore.delete(index)) {
      counts.notSent += 1;
    }
  }

  function send(index: number, connection: number): void {
    const request = schedule.requestOf(index);
    const body = bodies.of(request, schedule.dueAtMs(index) + options.wallClockMs);
    if (sentBefore.size > 0 && sentBefore.has(index)) counts.retries += 1;
    else counts.sent += 1;
    counts.plainBytes += body.plainBytes;
    counts.bodyBytes += body.bytes.length;
    open += 1;
    const sentAtMs = nowMs();
    connections[connection]!.send(body.bytes, (answer) => {
      open -= 1;
      judge(index, answer, sentAtMs);
      const next = ended ? undefined : backlog.shift();
      counts.backlog = backlog.length;
      if (next === undefined) free.push(connection);
      else send(next, connection);
      if (counts.due < dueUntil) offerDue();
      else endWhenDone();
    });
  }

  function judge(index: number, answer: Answer, sentAtMs: number): void {
    const request = schedule.requestOf(index);
    ledger?.note(request * batch, batch, answer.verdict);
    if (ended) {
      counts.unanswered += 1;
      return;
    }
    answers.set(answer.label, (answers.get(answer.label) ?? 0) + 1);
    if (answer.verdict === "acknowledged") {
      const now = nowMs();
      counts.acknowledged += 1;
      if (request >= options.warmUpRequests)
        options.onAcknowledged(now - schedule.dueAtMs(index), now - sentAtMs);
    } else if (retry && answer.retryAfterMs !== undefined && waiting.size < options.backlogMax) {
      sentBefore.add(index);
      waiting.set(index, setTimeout(sendAgain, answer.retryAfterMs, index));
      return;
    }
    if (sentBefore.size > 0) sentBefore.delete(index);
  }

  function sendAgain(index: number): void {
    waiting.delete(index);
    offer(index);
    endWhenDone();
  }

  function tick(): void {
    offerDue();
    if (counts.due < dueUntil) {
      const sleepMs = Math.floor(schedule.dueAtMs(counts.due) - nowMs()) - tickMs;
      if (sleepMs < tickMs && schedule.intervalMs >= exactFromIntervalMs) setImmediate(tick);
      else tickTimer = setTimeout(tick, Math.max(sleepMs, tickMs));
    } else if (endTimer === undefined) {
      endTimer = setTimeout(sendNoMore, options.graceMs);
      endWhenDone();
    }
  }

  function endWhenDone(): void {
    if (endTimer !== undefined && open === 0 && backlog.length === 0 && waiting.size === 0) end();
  }

  /** Ends the grace period. Requests in flight may complete until their timeout. */
  function sendNoMore(): void {
    for (let index = backlog.shift(); index !== undefined; index = backlog.shift()) {
      if (!sentBefore.has(index)) counts.notSent += 1;
    }
    counts.backlog = 0;
    for (const timer of waiting.values()) clearTimeout(timer);
    waiting.clear();
    retry = false;
    // The client handles the timeouts itself, in steps of up to a second.
    endTimer = setTimeout(end, options.timeoutMs + cutAfterMs);
    endWhenDone();
  }

  function end(): void {
    if (ended) return;
    ended = true;
    clearTimeout(endTimer);
    for (const connection of connections) connection.close();
    finish();
  }

  async function run(): Promise<void> {
    await new Promise<void>((resolve) => {
      finish = resolve;
      running = true;
      tick();
    });
    // A closed connection reports the failure of its request in a later event loop iteration.
    while (open > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  function stop(): void {
    if (ended || dueUntil === counts.due) return;
    dueUntil = counts.due;
    clearTimeout(tickTimer);
    if (running) tick();
  }

  return { counts, answers, run, stop };
}

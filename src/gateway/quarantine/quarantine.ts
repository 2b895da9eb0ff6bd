// Stores rejected items in the streams of the lane `rejected`, in the background. No request waits
// for it. Memory and rate are limited, so that a flood of invalid events costs little. An item that
// cannot be stored is counted as lost.

import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { atMost, SparseWarning } from "../../platform/base/retry.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import {
  eventsHeader,
  headerBytesMax,
  partitionOf,
  rejectedLane,
  streamName,
  subjectOf,
} from "../../platform/nats/names.ts";
import { UuidSource, uuidBytes } from "../../records/uuid.ts";
import type {
  QuarantinedItem,
  QuarantineOrigin,
  QuarantineReason,
  QuarantineTaker,
  RequestQuarantine,
} from "../intake/quarantine-port.ts";
import { detailCharactersMax, lineOf } from "./rejected-item.ts";

/** Maximum bytes of a stored item. */
export const itemBytesMax = 262_144;
/** Maximum bytes of items in memory: of requests in progress, waiting, and unacknowledged. */
export const heldBytesMax = 8_388_608;
/** The rate of one project, and the bytes that it may exceed the rate by after a pause. */
const projectBytesPerSecond = 524_288;
export const projectBurstBytes = 4_194_304;
/** Bytes that a line has in addition to its texts, and that its objects need in memory. */
const lineOverheadBytes = 512;
/** Bytes of lines at which a message ends. A longer line is a message of its own. */
const messageBytesTarget = 262_144;
/** Time in which the items of a project are gathered into one message. */
const gatherMs = 100;
const ackTimeoutMs = 5_000;
/** Bridges an election of the stream's leader of 10 s, in which NATS rejects each attempt at once. */
export const attemptsMax = 12;
const againMsDefault = 1_000;
/** Maximum time in which a stop stores the last items. */
const drainMsMax = 3_000;
const lostLogEveryMs = 60_000;

/**
 * Why an item is lost. `too_large`: it exceeds `itemBytesMax`, or the server's maximum message.
 * `overflow`: no memory is left for it, or its project exceeds its rate. `store`: JetStream did not
 * acknowledge it. It may be stored anyway.
 */
export const lostCauses = ["too_large", "overflow", "store"] as const;
export type LostCause = (typeof lostCauses)[number];

interface QuarantineMetrics {
  rejectedStored(reason: QuarantineReason, count: number): void;
  rejectedLost(cause: LostCause, count: number): void;
}

interface QuarantineOptions {
  readonly link: Pick<NatsLink, "connection" | "connected" | "messageBytesMax">;
  readonly config: { readonly subjectPrefix: string; readonly partitions: number };
  /** The unique id of this process, in message ids. */
  readonly processId: string;
  readonly metrics: QuarantineMetrics;
  readonly log: Pick<Log, "warn">;
  readonly monotonicMs: () => number;
  /** Called if a stream is missing. */
  readonly ensureStreams: () => void;
  /** Pause between attempts. */
  readonly againMs?: number;
}

interface HeldLine {
  readonly text: string;
  readonly reason: QuarantineReason;
  readonly lineBytes: number;
  /** The bytes that count against the limits of memory and rate. */
  readonly heldBytes: number;
}

interface ProjectState {
  /** Bytes that the project may hold now. */
  level: number;
  filledMonotonicMs: number;
  waiting: HeldLine[];
}

export class Quarantine implements QuarantineTaker {
  readonly #options: QuarantineOptions;
  readonly #uuids = new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) });
  readonly #id = Buffer.alloc(uuidBytes);
  readonly #js: JetStreamClient;
  readonly #lost: SparseWarning;
  readonly #againMs: number;
  /** The projects with an item since the start. */
  readonly #projects = new Map<string, ProjectState>();
  readonly #sending = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #heldBytes = 0;
  #itemsSending = 0;
  #messages = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: QuarantineOptions) {
    this.#options = options;
    this.#js = jetstream(options.link.connection, { timeout: ackTimeoutMs });
    this.#lost = new SparseWarning(options.log, lostLogEveryMs);
    this.#againMs = options.againMs ?? againMsDefault;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  open(origin: QuarantineOrigin): RequestQuarantine {
    return new RequestItems(this, origin);
  }

  newId(receivedAtMs: number): string {
    this.#uuids.write(this.#id, 0, receivedAtMs);
    return this.#id.toString("latin1");
  }

  /** Reserves memory for an item. Returns false if there is none, or if the project is too fast. */
  reserve(projectId: string, bytes: number): boolean {
    const project = this.#projectOf(projectId);
    const now = this.#options.monotonicMs();
    const refilled = ((now - project.filledMonotonicMs) / 1_000) * projectBytesPerSecond;
    project.filledMonotonicMs = now;
    project.level = Math.min(projectBurstBytes, project.level + refilled);
    if (project.level < bytes || this.#heldBytes + bytes > heldBytesMax) return false;
    project.level -= bytes;
    this.#heldBytes += bytes;
    return true;
  }

  /** Gives the memory of forgotten items back. */
  forget(projectId: string, lines: readonly HeldLine[]): void {
    const bytes = bytesOf(lines);
    this.#heldBytes -= bytes;
    this.#projectOf(projectId).level += bytes;
  }

  /** Stores the lines in the background. */
  store(projectId: string, lines: readonly HeldLine[]): void {
    const { waiting } = this.#projectOf(projectId);
    for (const line of lines) waiting.push(line);
    this.#timer ??= setTimeout(() => this.#flush(), gatherMs).unref();
  }

  lost(cause: LostCause, count: number, why?: string): void {
    this.#options.metrics.rejectedLost(cause, count);
    const reason = why ?? lostReasons[cause];
    this.#lost.warn(
      { cause, items: count, reason },
      "rejected events lost: they are neither stored as events nor retained for penstock rejected",
    );
  }

  /** Stores the last items. Items that are not acknowledged in time are lost. */
  async close(): Promise<void> {
    this.#flush();
    await atMost(drainMsMax, Promise.allSettled(this.#sending));
    this.#closing.abort();
    clearTimeout(this.#timer);
    const waiting = [...this.#projects.values()].map((project) => project.waiting.length);
    const left = waiting.reduce((sum, items) => sum + items, this.#itemsSending);
    if (left > 0) this.lost("store", left, "the gateway stopped");
  }

  #projectOf(id: string): ProjectState {
    let project = this.#projects.get(id);
    if (project === undefined) {
      const filledMonotonicMs = this.#options.monotonicMs();
      project = { level: projectBurstBytes, filledMonotonicMs, waiting: [] };
      this.#projects.set(id, project);
    }
    return project;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // The client's buffer has no limit, so nothing is published without a connection. The items
    // wait, within the limit of memory.
    if (!this.#options.link.connected) {
      this.#timer = setTimeout(() => this.#flush(), this.#againMs).unref();
      return;
    }
    for (const [id, project] of this.#projects) {
      const lines = project.waiting;
      project.waiting = [];
      for (let start = 0; start < lines.length; ) {
        let end = start + 1;
        let bytes = lines[start]!.lineBytes;
        for (; end < lines.length && bytes + lines[end]!.lineBytes <= messageBytesTarget; end++)
          bytes += lines[end]!.lineBytes;
        const sending = this.#send(id, lines.slice(start, end)).finally(() =>
          this.#sending.delete(sending),
        );
        this.#sending.add(sending);
        start = end;
      }
    }
  }

  /** Sends one message until it is acknowledged or lost. Never rejects. */
  async #send(projectId: string, lines: readonly HeldLine[]): Promise<void> {
    const { link, metrics } = this.#options;
    const data = Buffer.from(lines.map(({ text }) => text).join(""));
    this.#itemsSending += lines.length;
    try {
      if (data.length + headerBytesMax > link.messageBytesMax) {
        this.lost("too_large", lines.length);
        return;
      }
      const why = await this.#publish(projectId, { data, count: lines.length });
      if (why === undefined) for (const { reason } of lines) metrics.rejectedStored(reason, 1);
      else if (!this.#closing.signal.aborted) this.lost("store", lines.length, why);
    } finally {
      this.#itemsSending -= lines.length;
      this.#heldBytes -= bytesOf(lines);
    }
  }

  /** Returns undefined if the message is stored, else the reason of the last attempt. */
  async #publish(
    projectId: string,
    { data, count }: { readonly data: Buffer; readonly count: number },
  ): Promise<string | undefined> {
    const { link, config, processId, ensureStreams } = this.#options;
    const { subjectPrefix: prefix, partitions } = config;
    const partition = partitionOf(projectId, partitions);
    const subject = subjectOf(prefix, rejectedLane, { partition, projectId });
    const msgID = `${processId}/${rejectedLane}/${++this.#messages}`;
    const expect = { streamName: streamName(prefix, rejectedLane, partition) };
    const head = headers();
    head.set(eventsHeader, String(count));
    let why: string | undefined;
    for (let attempt = 1; attempt <= attemptsMax && !this.#closing.signal.aborted; ) {
      if (link.connected) {
        attempt++;
        try {
          await this.#js.publish(subject, data, { msgID, expect, headers: head });
          return undefined;
        } catch (error) {
          why = (error as Error).message;
          ensureStreams();
        }
      }
      const pause = { signal: this.#closing.signal, ref: false };
      await delay(this.#againMs, undefined, pause).catch(() => {});
    }
    return why ?? "the gateway stopped";
  }
}

const lostReasons: Record<LostCause, string> = {
  too_large: `the item exceeds ${itemBytesMax} bytes, or the maximum message of NATS`,
  overflow: `the project has more than ${projectBytesPerSecond} bytes of rejected events per second, or NATS does not respond and ${heldBytesMax} bytes wait`,
  store: "JetStream did not acknowledge them",
};

/** Returns the bytes of the texts next to the item. JavaScript may need two bytes per character. */
function textBytesOf(
  { projectId, additions = "" }: QuarantineOrigin,
  { detail, rule = "" }: QuarantinedItem,
): number {
  const detailLength = Math.min(detail.length, detailCharactersMax);
  return 2 * (detailLength + rule.length + projectId.length + additions.length);
}

function bytesOf(lines: readonly HeldLine[]): number {
  return lines.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
}

class RequestItems implements RequestQuarantine {
  readonly #quarantine: Quarantine;
  readonly #origin: QuarantineOrigin;
  readonly #lines: HeldLine[] = [];
  #tooLarge = 0;
  #overflow = 0;

  constructor(quarantine: Quarantine, origin: QuarantineOrigin) {
    this.#quarantine = quarantine;
    this.#origin = origin;
  }

  take(item: QuarantinedItem): void {
    const { projectId, receivedAtMs } = this.#origin;
    const itemBytes = item.end - item.start;
    const heldBytes = itemBytes + textBytesOf(this.#origin, item) + lineOverheadBytes;
    if (itemBytes > itemBytesMax) this.#tooLarge++;
    else if (!this.#quarantine.reserve(projectId, heldBytes)) this.#overflow++;
    else {
      const text = lineOf(this.#origin, item, this.#quarantine.newId(receivedAtMs));
      const lineBytes = Buffer.byteLength(text);
      this.#lines.push({ text, reason: item.reason, lineBytes, heldBytes });
    }
  }

  settle(isReported: boolean): void {
    const { projectId } = this.#origin;
    if (!isReported) {
      this.#quarantine.forget(projectId, this.#lines);
      return;
    }
    if (this.#tooLarge > 0) this.#quarantine.lost("too_large", this.#tooLarge);
    if (this.#overflow > 0) this.#quarantine.lost("overflow", this.#overflow);
    if (this.#lines.length > 0) this.#quarantine.store(projectId, this.#lines);
  }
}

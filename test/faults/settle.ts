// Reads every stored line and compares it with the answers and with the event that was sent.

import { type JsMsg, jetstreamManager } from "@nats-io/jetstream";
import { readMessages } from "../../bench/load/stored.ts";
import { eventsHeader, lanes } from "../../src/platform/nats/names.ts";
import { isAsSent } from "./bodies.ts";
import { connectReader } from "./connect-reader.ts";
import { type Events, kinds } from "./event-kinds.ts";
import { isFiller } from "./filler.ts";
import type { LedgerTotals, Store } from "./scenario.ts";

export interface Settlement extends Omit<LedgerTotals, "strangeAnswers"> {
  /**
   * Single events that are stored although a 503 guaranteed that they are not stored. Must be 0.
   */
  readonly storedThoughRefusedForNow: number;
  /** Events that are stored more often than their attempts can explain. Must be 0. */
  readonly duplicatedWithoutCause: number;
  /**
   * Large requests that are stored twice. Their frames have the same message ids if a client sends
   * the request again. Must be 0.
   */
  readonly duplicatedOwnFrames: number;
  readonly damaged: readonly string[];
}

interface StreamReader {
  read(): Promise<void>;
  settlement(): Settlement;
}

interface Reading {
  readonly events: Events;
  readonly history: Map<string, number[]>;
  readonly damaged: string[];
  readonly otherProjects: readonly string[];
}

const damagedMax = 10;
const subjectPrefix = "penstock";

/** Events of `otherProjects`, which the load does not send, are ignored. */
export function createStreamReader(
  store: Store,
  events: Events,
  otherProjects: readonly string[] = [],
): StreamReader {
  const reading: Reading = { events, history: new Map(), damaged: [], otherProjects };
  const lastRead = new Map<string, number>();

  async function read(): Promise<void> {
    const connection = await connectReader(store);
    try {
      const manager = await jetstreamManager(connection);
      for (const lane of lanes) {
        const subject = `${subjectPrefix}.${lane}.*.*`;
        for await (const stream of manager.streams.names(subject)) {
          await readMessages(
            connection,
            { stream, lastSequence: lastRead.get(stream) ?? 0, subject },
            (message) => {
              lastRead.set(stream, message.info.streamSequence);
              if (!isFiller(message.subject)) readFrame(reading, message);
            },
          );
        }
      }
    } finally {
      await connection.close();
    }
  }

  return { read, settlement: () => settlementOf(reading) };
}

function readFrame(reading: Reading, message: JsMsg): void {
  const lines = Buffer.from(message.data).toString("utf8").split("\n");
  const at = `message ${message.info.streamSequence} of ${message.info.stream}`;
  if (lines.pop() !== "") {
    noteDamage(reading, `${at}: does not end in a line feed`);
    return;
  }
  const declared = message.headers?.get(eventsHeader);
  if (declared !== String(lines.length))
    noteDamage(reading, `${at}: ${lines.length} lines, its header says ${declared}`);
  const subject = message.subject.split(".");
  for (const line of lines) readLine(reading, line, { at, subject });
}

function readLine(
  reading: Reading,
  line: string,
  { at, subject }: { at: string; subject: string[] },
): void {
  const record = parsed(line);
  if (reading.otherProjects.includes(String(record?.["project_id"]))) return;
  const known =
    typeof record?.["uuid"] === "string" ? reading.events.read(record["uuid"]) : undefined;
  if (record === undefined || known === undefined) {
    noteDamage(reading, `${at}: ${line.slice(0, 80)}`);
    return;
  }
  const { kind, number } = known;
  const project = kind.projectOf(number);
  const historical = kind.kind === "history";
  const whole =
    isAsSent(record, number) &&
    record["project_id"] === project &&
    record["historical"] === historical &&
    subject[1] === (historical ? "historical" : "live") &&
    (subject[3] === project || subject[3] === "~");
  if (!whole || !kind.ledger.noteStored(number))
    noteDamage(reading, `${at}: not the line of what was sent: ${line.slice(0, 400)}`);
  if (!historical) return;
  const history = reading.history.get(project);
  if (history === undefined) reading.history.set(project, [number]);
  else history.push(number);
}

function noteDamage({ damaged }: Reading, text: string): void {
  if (damaged.length < damagedMax) damaged.push(text);
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function settlementOf({ events, history, damaged }: Reading): Settlement {
  const sum = {
    acknowledged: 0,
    lost: 0,
    duplicated: 0,
    duplicatedWithoutCause: 0,
    duplicatedOwnFrames: 0,
    refused: 0,
    storedThoughRefused: 0,
    storedThoughRefusedForNow: 0,
    unknown: 0,
    storedThoughUnknown: 0,
  };
  for (const name of kinds) {
    const tally = events.of[name].ledger.tally();
    sum.acknowledged += tally.acknowledged;
    sum.lost += tally.lost;
    sum.duplicated += tally.storedMoreThanOnce + tally.storedAgainAfterUnknown;
    sum.duplicatedWithoutCause += tally.storedMoreThanOnce;
    if (name === "large") sum.duplicatedOwnFrames += tally.storedAgainAfterUnknown;
    sum.refused += tally.refused;
    if (name === "bad") sum.storedThoughRefused += tally.storedThoughRefused;
    else sum.storedThoughRefusedForNow += tally.storedThoughRefused;
    sum.unknown += tally.unknown;
    sum.storedThoughUnknown += tally.storedThoughUnknown;
  }
  return { ...sum, outOfOrder: outOfOrder(events, history), damaged };
}

/**
 * Counts only acknowledged events. An event with an unknown outcome may still be in the socket of a
 * frozen node, and be stored after later events.
 */
function outOfOrder(events: Events, history: ReadonlyMap<string, readonly number[]>): number {
  const { ledger } = events.of.history;
  let count = 0;
  for (const numbers of history.values()) {
    let last = -1;
    for (const number of numbers) {
      if (!ledger.isAcknowledged(number)) continue;
      if (number <= last) count++;
      last = number;
    }
  }
  return count;
}

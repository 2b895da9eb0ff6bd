// The connections of a load: the requests of each connection, their rate, and the expected answers.

import { gzipSync } from "node:zlib";
import { batchBody, eventText, eventTexts, singleBody } from "./bodies.ts";
import { type Events, historyConnections, type KindOfEvent, type LoadName } from "./event-kinds.ts";

export interface FaultRequest {
  readonly body: Buffer;
  readonly gzip: boolean;
  readonly kind: KindOfEvent;
  readonly first: number;
  readonly events: number;
  readonly bad?: readonly number[];
  readonly expected: "200" | "400 invalid_properties" | "401 unknown_api_key";
}

export interface Sender {
  /**
   * The kind of the sender's valid events, and its queue in the gateway. Senders with the same name
   * recover together after a fault.
   */
  readonly name: string;
  readonly next: () => FaultRequest;
  readonly pauseMs: number;
  readonly retries: boolean;
  readonly steady: boolean;
}

export interface LoadShape {
  readonly singleConnections: number;
  readonly singlePauseMs: number;
  /**
   * The additional pause of the last connection. Each earlier connection pauses for less, so that
   * the connections do not send in step. Default: 0.
   */
  readonly singlePauseSpreadMs?: number;
  readonly batchConnections: number;
  readonly batchPauseMs: number;
  readonly batchEvents: number;
  readonly largePauseMs: number;
  readonly importPauseMs: number;
  readonly largeImportEvery: number;
}

const largeEvents = 2_000;
const largePaddingBytes = 500;
const smallPaddingBytes = 100;
const importEvents = 5;

export function createSenders(events: Events, load: LoadName, shape: LoadShape): Sender[] {
  const senders = [...historySenders(events, shape), badSender(events, shape)];
  // The load `rules` has its own senders next to these.
  if (load === "rules") return senders;
  if (load === "projects") {
    const singleConnections = events.of.single.projects.length;
    return [...senders, ...singleSenders(events, { ...shape, singleConnections })];
  }
  if (load !== "batches") senders.push(...singleSenders(events, shape));
  if (load !== "singles") senders.push(...batchSenders(events, shape), largeSender(events, shape));
  return senders;
}

function singleSenders(events: Events, shape: LoadShape): Sender[] {
  const kind = events.of.single;
  const moreMs = (shape.singlePauseSpreadMs ?? 0) / shape.singleConnections;
  return Array.from({ length: shape.singleConnections }, (_, connection) => ({
    name: `single ${kind.projectOf(0)} ${connection % 3}`,
    next: () => {
      const first = kind.take(1, connection);
      const body = singleBody(kind, first, { paddingBytes: smallPaddingBytes });
      return { body, gzip: false, kind, first, events: 1, expected: "200" };
    },
    pauseMs: shape.singlePauseMs + Math.round(connection * moreMs),
    retries: connection % 2 === 0,
    steady: true,
  }));
}

function batchSenders(events: Events, shape: LoadShape): Sender[] {
  const kind = events.of.batch;
  return Array.from({ length: shape.batchConnections }, (_, connection) => ({
    name: `batch ${connection % 3}`,
    next: () => {
      const first = kind.take(shape.batchEvents, connection);
      const items = eventTexts(kind, first, shape.batchEvents, { paddingBytes: smallPaddingBytes });
      const plain = batchBody(kind.projectOf(first), items);
      const gzip = connection % 4 === 3;
      const body = gzip ? gzipSync(plain, { level: 1 }) : plain;
      return { body, gzip, kind, first, events: shape.batchEvents, expected: "200" };
    },
    pauseMs: shape.batchPauseMs,
    retries: connection % 2 === 0,
    steady: true,
  }));
}

function largeSender(events: Events, shape: LoadShape): Sender {
  const kind = events.of.large;
  return {
    name: "large",
    next: () => {
      const first = kind.take(largeEvents, 0);
      const items = eventTexts(kind, first, largeEvents, { paddingBytes: largePaddingBytes });
      const body = batchBody(kind.projectOf(first), items);
      return { body, gzip: false, kind, first, events: largeEvents, expected: "200" };
    },
    pauseMs: shape.largePauseMs,
    retries: true,
    steady: false,
  };
}

function historySenders(events: Events, shape: LoadShape): Sender[] {
  const kind = events.of.history;
  return Array.from({ length: historyConnections }, (_, connection) => {
    let request = 0;
    return {
      name: `history ${connection}`,
      next: () => {
        request++;
        const isLarge = request % shape.largeImportEvery === 0;
        const count = isLarge ? largeEvents : importEvents;
        const first = kind.take(count, connection);
        const paddingBytes = isLarge ? largePaddingBytes : smallPaddingBytes;
        const items = eventTexts(kind, first, count, { paddingBytes });
        return {
          body: batchBody(kind.projectOf(first), items, true),
          gzip: false,
          kind,
          first,
          events: count,
          expected: "200" as const,
        };
      },
      pauseMs: shape.importPauseMs,
      retries: false,
      steady: true,
    };
  });
}

function badSender(events: Events, shape: LoadShape): Sender {
  const { bad, batch } = events.of;
  const paddingBytes = smallPaddingBytes;
  let request = 0;
  return {
    name: "bad",
    next: () => {
      const number = bad.take(1, 0);
      const only = { gzip: false, kind: bad, first: number, events: 0, bad: [number] };
      switch (request++ % 3) {
        case 0:
          return {
            ...only,
            body: singleBody(bad, number, { paddingBytes, key: "phc_nobody" }),
            expected: "401 unknown_api_key",
          };
        case 1:
          return {
            ...only,
            body: singleBody(bad, number, { paddingBytes, bad: true }),
            expected: "400 invalid_properties",
          };
        default: {
          const first = batch.take(2, 0);
          const [before, after] = eventTexts(batch, first, 2, { paddingBytes });
          const between = eventText(bad, number, { paddingBytes, bad: true });
          const body = batchBody(batch.projectOf(first), [before!, between, after!]);
          return {
            body,
            gzip: false,
            kind: batch,
            first,
            events: 2,
            bad: [number],
            expected: "200",
          };
        }
      }
    },
    pauseMs: Math.max(shape.importPauseMs, 10),
    retries: false,
    steady: false,
  };
}

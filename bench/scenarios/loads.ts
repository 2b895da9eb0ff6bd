// The loads by name. Budgets and the chart find results by these names.

import {
  batchBody,
  gzipped,
  hugeBatchEvents,
  singleBody,
  uniqueBatchBody,
} from "../harness/bodies.ts";
import type { Load } from "../harness/load.ts";

const batchConnections = 32;
const hugeConnections = 2;
const largeEventsAtOnce = 8_000;
/** A larger body fills its own frames, so each body must be different. */
const uniqueFromEvents = 1_000;

const bodies = new Map<string, readonly Buffer[]>();

function made(key: string, make: () => readonly Buffer[]): readonly Buffer[] {
  const known = bodies.get(key) ?? make();
  bodies.set(key, known);
  return known;
}

export function singles(connections: number, seconds: number): Load {
  return {
    name: `single events, ${connections} connection${connections === 1 ? "" : "s"}`,
    path: "/capture/",
    bodies: made("single", () => [singleBody(0)]),
    eventsPerRequest: 1,
    connections,
    seconds,
  };
}

export function singlesOfName(projects: number, connections: number): string {
  return `single events, ${connections} connections, ${projects.toLocaleString("en")} projects`;
}

export function singlesOf(projects: number, seconds: number, connections = 128): Load {
  return {
    ...singles(connections, seconds),
    name: singlesOfName(projects, connections),
    bodies: made(`projects ${projects}`, () =>
      Array.from({ length: projects }, (_, index) => singleBody(index, index)),
    ),
  };
}

export function batchesOf(projects: number, events: number, seconds: number): Load {
  return {
    ...batches(events, seconds),
    bodies: made(`batches ${events} projects ${projects}`, () =>
      Array.from({ length: projects }, (_, project) => batchBody(events, project)),
    ),
  };
}

export function batches(events: number, seconds: number, gzip = false): Load {
  const unique = events >= uniqueFromEvents;
  const plain = made(`batch ${events}`, () => [
    unique ? uniqueBatchBody(events) : batchBody(events),
  ]);
  return {
    name: `batches of ${events.toLocaleString("en")}${gzip ? ", gzip" : ""}`,
    path: "/batch/",
    bodies: gzip && !unique ? made(`gzip ${events}`, () => plain.map(gzipped)) : plain,
    ...(gzip ? { contentEncoding: "gzip" } : {}),
    unique,
    eventsPerRequest: events,
    connections: unique ? Math.max(hugeConnections, largeEventsAtOnce / events) : batchConnections,
    seconds,
  };
}

/**
 * A fixed number of bodies just under 20 MiB, because a time limit could end before any response.
 */
export function huge(amount: number, gzip = false): Load {
  return {
    ...batches(hugeBatchEvents, 60, gzip),
    name: `batches of 19 MB${gzip ? ", gzip" : ""}`,
    amount,
    connections: Math.min(hugeConnections, amount),
  };
}

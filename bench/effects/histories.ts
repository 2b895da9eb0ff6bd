// The histories for measurements of the effects: the ids and contents of their events. The lines
// are like the gateway's: about 400 bytes, with the same order of fields.

import { createHash } from "node:crypto";
import type { LinkOutcome } from "../../src/readers/effects/types.ts";
import { storedLine, type TestEvent } from "../../test/kit/stored-events.ts";

export interface History {
  readonly name: string;
  readonly events: number;
  readonly warmUpEvents: number;
  readonly outcome?: LinkOutcome;
  readonly uuid?: (index: number) => string;
  readonly event: (index: number) => Pick<TestEvent, "distinctId" | "set" | "kind" | "event"> & {
    readonly properties?: Readonly<Record<string, unknown>>;
  };
}

const knownPeople = 10_000;
/** Half of the maximum number of ids of a person. */
const idsOfPerson = 5_000;
export const eventsInFrame = 1_000;
const startMs = Date.UTC(2026, 10, 20, 12);
const padding = { $current_url: "https://example.com/pricing?plan=pro", $lib: "web", step: 7 };

export const historyNames = {
  known: "known people, nothing changes",
  set: "$set in every event, 10,000 people",
  newPeople: "every event a new person",
} as const;

export const histories: readonly History[] = [
  {
    name: historyNames.known,
    events: 2_000_000,
    warmUpEvents: 20_000,
    event: (index) => ({ distinctId: `user-${index % knownPeople}` }),
  },
  {
    name: historyNames.set,
    events: 500_000,
    warmUpEvents: 20_000,
    event: (index) => ({
      distinctId: `user-${(index * 7_919) % knownPeople}`,
      set: { plan: index % 2 === 0 ? "pro" : "free", seen: index },
    }),
  },
  {
    name: historyNames.newPeople,
    events: 400_000,
    warmUpEvents: 10_000,
    event: (index) => ({ distinctId: `new-${index}` }),
  },
  {
    name: "all events one person, with $set",
    events: 500_000,
    warmUpEvents: 10_000,
    event: (index) => ({ distinctId: "one", set: { seen: index } }),
  },
  {
    name: "every event merges an id into one of many people, of 5,000 ids each",
    events: 200_000,
    warmUpEvents: 10_000,
    outcome: "merged",
    event: (index) => identify(`user-${Math.floor(index / idsOfPerson)}`, index),
  },
  {
    name: "every event merges two new ids",
    events: 200_000,
    warmUpEvents: 10_000,
    outcome: "merged",
    event: (index) => identify(`user-${index}`, index),
  },
  {
    // The 10,000 events of the warm-up fill the person to the maximum number of ids.
    name: "a storm of links to one person, all refused",
    events: 200_000,
    warmUpEvents: 10_000,
    outcome: "refused_cap",
    event: (index) => identify("user", index),
  },
];

function identify(distinctId: string, index: number): ReturnType<History["event"]> {
  const properties = { $anon_distinct_id: `anonymous-${index}` };
  return { distinctId, event: "$identify", kind: "identify", properties };
}

export function frameText(history: History, frame: number, projectId: string): string {
  const receivedAtMs = startMs + frame;
  let text = "";
  for (let line = 0; line < eventsInFrame; line++) {
    const index = frame * eventsInFrame + line;
    const { properties, ...event } = history.event(index);
    const uuid = (history.uuid ?? randomUuidOf)(index);
    const whole = { uuid, receivedAtMs, ...event };
    text += `${storedLine({ ...whole, properties: { ...padding, ...properties } }, projectId, "live")}\n`;
  }
  return text;
}

function randomUuidOf(index: number): string {
  return uuidText(createHash("md5").update(String(index)).digest("hex"));
}

/** Begins with the time, like the uuids of posthog-js and the gateway. */
export function timedUuidOf(index: number): string {
  const time = (startMs + Math.floor(index / eventsInFrame)).toString(16).padStart(12, "0");
  const rest = createHash("md5").update(String(index)).digest("hex");
  return uuidText(`${time}7${rest.slice(13)}`);
}

function uuidText(hex: string): string {
  return [0, 8, 12, 16, 20].map((at, part) => hex.slice(at, [8, 12, 16, 20, 32][part])).join("-");
}

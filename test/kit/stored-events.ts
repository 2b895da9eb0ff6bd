import {
  DiscardPolicy,
  type JetStreamClient,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { headers, type MsgHdrs, type NatsConnection } from "@nats-io/nats-core";
import type { Lane } from "../../src/platform/base/lane.ts";
import { nanosPerMs } from "../../src/platform/nats/api.ts";
import { streamName, streamSubject, subjectOf } from "../../src/platform/nats/names.ts";

export interface TestEvent {
  readonly uuid: string;
  readonly event?: string;
  readonly distinctId: string;
  readonly receivedAtMs: number;
  readonly timeMs?: number;
  readonly kind?: string;
  readonly personProfile?: boolean;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly set?: Readonly<Record<string, unknown>>;
  readonly setOnce?: Readonly<Record<string, unknown>>;
  readonly unset?: readonly string[];
}

export interface TestFrame {
  readonly lane: Lane;
  readonly partition?: number;
  readonly projectId: string;
  readonly messageId: string;
  readonly events: readonly TestEvent[];
  readonly schema?: string;
  readonly text?: string | Uint8Array;
}

/** Returns a uuid that differs for each number. */
export function uuidOf(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
}

const prefix = "penstock";

export async function makeStreams(connection: NatsConnection, partitions = 1): Promise<void> {
  const manager = await jetstreamManager(connection);
  for (let partition = 0; partition < partitions; partition++) {
    for (const lane of ["live", "historical"] as const) {
      await manager.streams.add({
        name: streamName(prefix, lane, partition),
        subjects: [streamSubject(prefix, lane, partition)],
        discard: DiscardPolicy.New,
        duplicate_window: 120_000 * nanosPerMs,
      });
    }
  }
}

const ahead = 50;

export async function storeFrames(
  connection: NatsConnection,
  frames: readonly TestFrame[],
): Promise<number[]> {
  const js = jetstream(connection);
  const sequences: number[] = [];
  for (let from = 0; from < frames.length; ) {
    // The first frame is sent alone, to check the connection. The other frames are sent together.
    const some = frames.slice(from, from === 0 ? 1 : from + ahead);
    sequences.push(...(await Promise.all(some.map((frame) => store(js, frame)))));
    from += some.length;
  }
  return sequences;
}

function store(js: JetStreamClient, frame: TestFrame): Promise<number> {
  const { lane, partition = 0, projectId, messageId, events, schema = "1" } = frame;
  const head = headers();
  head.set("Nats-Msg-Id", messageId);
  head.set("Penstock-Events", String(events.length));
  head.set("Penstock-Schema", schema);
  const subject = subjectOf(prefix, lane, { partition, projectId });
  return publish(js, subject, { text: frame.text ?? storedText(frame), headers: head });
}

/**
 * A frame is lost if it is sent during a reconnect, so it is sent again. Its id prevents
 * duplicates.
 */
async function publish(
  js: JetStreamClient,
  subject: string,
  { text, headers: head }: { readonly text: string | Uint8Array; readonly headers: MsgHdrs },
): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      return (await js.publish(subject, text, { headers: head, timeout: 1_000 })).seq;
    } catch (error) {
      if (tries === 10) throw error;
    }
  }
}

function storedText({ events, projectId, lane }: TestFrame): string {
  return events.map((event) => `${storedLine(event, projectId, lane)}\n`).join("");
}

export function storedLine(event: TestEvent, projectId: string, lane: Lane): string {
  const { uuid, distinctId, receivedAtMs, timeMs = receivedAtMs, properties = {} } = event;
  return JSON.stringify({
    uuid,
    project_id: projectId,
    event: event.event ?? "seen",
    distinct_id: distinctId,
    timestamp: new Date(timeMs).toISOString(),
    received_at: new Date(receivedAtMs).toISOString(),
    kind: event.kind ?? "custom",
    person_profile: event.personProfile ?? true,
    historical: lane === "historical",
    properties,
    ...(event.set === undefined ? {} : { $set: event.set }),
    ...(event.setOnce === undefined ? {} : { $set_once: event.setOnce }),
    ...(event.unset === undefined ? {} : { $unset: event.unset }),
  });
}

import {
  AckPolicy,
  type ConsumerInfo,
  DeliverPolicy,
  type JetStreamManager,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { apiCodes, isApiError, nanosPerMs } from "../../platform/nats/api.ts";
import { manyProjects, subjectOf } from "../../platform/nats/names.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import { ConsumeError } from "./types.ts";

export interface DurableOptions {
  readonly durable: string;
  readonly prefix: string;
  readonly projects: readonly string[] | undefined;
  readonly maxAckPending: number;
  readonly ackWaitMs: number;
}

export const acks = { ack: "+ACK", nak: "-NAK", working: "+WPI" } as const;
export type Ack = (typeof acks)[keyof typeof acks];

/**
 * Maximum number of messages that `answerAll` answers. If more messages may be unacknowledged, it
 * answers none, and the server redelivers them after their ack wait.
 */
const askedBackMax = 20_000;

export async function durableInfo(
  manager: JetStreamManager,
  stream: string,
  durable: string,
): Promise<ConsumerInfo | undefined> {
  try {
    return await manager.consumers.info(stream, durable);
  } catch (error) {
    if (isApiError(error, apiCodes.consumerNotFound)) return undefined;
    throw error;
  }
}

export async function makeDurable(
  manager: JetStreamManager,
  { stream, lane, partition }: StreamName,
  { from, ...options }: DurableOptions & { readonly from: number },
): Promise<ConsumerInfo> {
  const target = (projectId: string) => subjectOf(options.prefix, lane, { partition, projectId });
  const filters = subjectsOf(options.projects).map(target);
  return await manager.consumers.add(stream, {
    durable_name: options.durable,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from,
    ack_policy: AckPolicy.Explicit,
    ack_wait: options.ackWaitMs * nanosPerMs,
    max_ack_pending: options.maxAckPending,
    ...(filters.length === 0 ? {} : { filter_subjects: filters }),
  });
}

function subjectsOf(projects: readonly string[] | undefined): string[] {
  return projects === undefined ? [] : [...projects, manyProjects];
}

/**
 * Checks an existing consumer. Throws a ConsumeError if its subjects differ from the options, or if
 * it would lose frames.
 */
export async function matchDurable(
  manager: JetStreamManager,
  { stream, config }: { readonly stream: string; readonly config: ConsumerInfo["config"] },
  options: DurableOptions,
): Promise<void> {
  const { durable, projects, maxAckPending, ackWaitMs } = options;
  const single = config.filter_subject === undefined ? [] : [config.filter_subject];
  const read = (config.filter_subjects ?? single).map((one) => one.split(".").at(-1)).sort();
  const wanted = subjectsOf(projects).sort();
  const isOwn = config.ack_policy === AckPolicy.Explicit && config.deliver_subject === undefined;
  if (!isOwn) {
    throw new ConsumeError(
      `cannot use the consumer ${durable} of ${stream}: it is not a pull consumer with explicit acknowledgement`,
    );
  }
  if (read.join() !== wanted.join()) {
    throw new ConsumeError(
      `cannot use the consumer ${durable} of ${stream}: it reads ${words(read)}, but the options request ${words(wanted)}: choose another durable name`,
    );
  }
  const loss = lossBy(config);
  if (loss !== undefined) {
    throw new ConsumeError(
      `cannot use the consumer ${durable} of ${stream}: ${loss}: choose another durable name, or delete the consumer to read the stream from its first message`,
    );
  }
  const ackWait = ackWaitMs * nanosPerMs;
  if (config.max_ack_pending === maxAckPending && config.ack_wait === ackWait) return;
  const changed = { max_ack_pending: maxAckPending, ack_wait: ackWait };
  await manager.consumers.update(stream, durable, changed);
}

function lossBy({ max_deliver, headers_only }: ConsumerInfo["config"]): string | undefined {
  if ((max_deliver ?? -1) > 0)
    return `it delivers a frame at most ${max_deliver} times (max_deliver), so frames would be lost`;
  return headers_only === true ? "it delivers headers without events (headers_only)" : undefined;
}

function words(projects: readonly (string | undefined)[]): string {
  const named = projects.filter((one) => one !== manyProjects);
  return named.length === 0 ? "all projects" : `the projects ${named.join(", ")}`;
}

interface Sent {
  readonly stream: string;
  readonly durable: string;
  readonly sequence: number;
  readonly deliverySequence: number;
}

/**
 * Returns the subject for the acknowledgement of a message. Any connection can send it. The server
 * ignores the constant numbers.
 */
export function answerSubject({ stream, durable, sequence, deliverySequence }: Sent): string {
  return `$JS.ACK.${stream}.${durable}.1.${sequence}.${deliverySequence}.0.0`;
}

/**
 * Answers all unacknowledged messages of an earlier connection. After a nak, the server redelivers
 * the message immediately.
 */
export function answerAll(
  connection: NatsConnection,
  info: ConsumerInfo,
  answer: (sequence: number) => Ack,
): void {
  const { ack_floor: floor, delivered, name: durable, stream_name: stream } = info;
  if (delivered.stream_seq - floor.stream_seq > askedBackMax) return;
  const deliverySequence = delivered.consumer_seq;
  for (let sequence = floor.stream_seq + 1; sequence <= delivered.stream_seq; sequence++) {
    const subject = answerSubject({ stream, durable, sequence, deliverySequence });
    connection.publish(subject, answer(sequence));
  }
}

// The durable consumer of one stream: made, found again, and compared with what is asked for. What
// it has sent to a reader that is gone is asked back, so that it comes at once and in order.

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
import { ConsumeError } from "./consume-error.ts";

export interface DurableOptions {
  readonly durable: string;
  readonly prefix: string;
  readonly projects: readonly string[] | undefined;
  readonly maxAckPending: number;
  readonly ackWaitMs: number;
}

export const acks = { ack: "+ACK", nak: "-NAK", working: "+WPI" } as const;
export type Ack = (typeof acks)[keyof typeof acks];

/** More messages than this are not asked back; they come when their time has run out. */
const askedBackMax = 20_000;

/** Undefined: there is no such consumer. */
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

/** The last part of the subjects that may have events of these projects; none: all do. */
function subjectsOf(projects: readonly string[] | undefined): string[] {
  return projects === undefined ? [] : [...projects, manyProjects];
}

/** Throws when it reads something else. What may be changed is brought up to date. */
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
      `use the consumer ${durable} of ${stream}: it is no pull consumer with explicit acknowledgement`,
    );
  }
  if (read.join() !== wanted.join()) {
    throw new ConsumeError(
      `use the consumer ${durable} of ${stream}: it reads ${words(read)}, and ${words(wanted)} were asked for: take another name for another choice`,
    );
  }
  const loss = lossBy(config);
  if (loss !== undefined) {
    throw new ConsumeError(
      `use the consumer ${durable} of ${stream}: ${loss}: take another name, or delete the consumer: then all is read from the stream's first message on`,
    );
  }
  const ackWait = ackWaitMs * nanosPerMs;
  if (config.max_ack_pending === maxAckPending && config.ack_wait === ackWait) return;
  const changed = { max_ack_pending: maxAckPending, ack_wait: ackWait };
  await manager.consumers.update(stream, durable, changed);
}

/**
 * By which setting a consumer that somebody else has made leaves out frames in silence. Other
 * settings make it slower, or are told: a consumer that the server removes after a while or with
 * its memory is made again, and where reading began was up to who made it.
 */
function lossBy({ max_deliver, headers_only }: ConsumerInfo["config"]): string | undefined {
  if ((max_deliver ?? -1) > 0)
    return `it delivers a frame at most ${max_deliver} times (max_deliver), so frames would be lost`;
  return headers_only === true ? "it delivers no events, but headers (headers_only)" : undefined;
}

function words(projects: readonly (string | undefined)[]): string {
  const named = projects.filter((one) => one !== manyProjects);
  return named.length === 0 ? "all projects" : `the projects ${named.join(", ")}`;
}

interface Sent {
  readonly stream: string;
  readonly durable: string;
  readonly sequence: number;
  /** How many messages the consumer had sent by then. */
  readonly deliverySequence: number;
}

/**
 * Where an answer for a message goes, over whatever connection. Of its other tokens the server
 * heeds none.
 */
export function answerSubject({ stream, durable, sequence, deliverySequence }: Sent): string {
  return `$JS.ACK.${stream}.${durable}.1.${sequence}.${deliverySequence}.0.0`;
}

interface AskBackOptions {
  readonly connection: NatsConnection;
  readonly stream: string;
  readonly info: ConsumerInfo;
  /** What to say of a message that the consumer has sent and does not know to be acknowledged. */
  readonly answer: (sequence: number) => Ack;
}

/** Answers for all that was sent over an earlier connection, in order. */
export function answerAll({ connection, stream, info, answer }: AskBackOptions): void {
  const { ack_floor: floor, delivered, name: durable } = info;
  if (delivered.stream_seq - floor.stream_seq > askedBackMax) return;
  const deliverySequence = delivered.consumer_seq;
  for (let sequence = floor.stream_seq + 1; sequence <= delivered.stream_seq; sequence++) {
    const subject = answerSubject({ stream, durable, sequence, deliverySequence });
    connection.publish(subject, answer(sequence));
  }
}

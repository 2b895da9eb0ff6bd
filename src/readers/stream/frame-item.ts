import type { MsgHdrs } from "@nats-io/nats-core";
import type { RewrittenFrame } from "../../platform/nats/erased-messages.ts";
import { eventsHeader, isOfManyProjects, messageIdHeader } from "../../platform/nats/names.ts";
import { rewrittenSequence } from "../../platform/nats/rewritten.ts";
import type { Share } from "./bytes-in-hand.ts";
import type { StoredFrame } from "./frame.ts";
import type { PulledMessage } from "./pull.ts";
import { messageIdOf, type StreamName } from "./stored-stream.ts";

export interface FrameItem {
  readonly kind: "frame";
  readonly frame: StoredFrame;
  /** From the message's header if plausible, otherwise by size. */
  readonly events: number;
  /** Whether the frame was read before and is delivered only to be remembered. */
  readonly isReread: boolean;
  /** Releases the frame's bytes to the budget. */
  release(): void;
}

export interface FrameOrigin {
  readonly name: StreamName;
  readonly epoch: number;
  /** Time when the stream was created, as the server reports it. */
  readonly created: string;
  readonly isReread: boolean;
}

type MessageParts = Pick<PulledMessage, "sequence" | "storedAtMs" | "share"> & {
  readonly message: {
    readonly subject: string;
    readonly data: Uint8Array;
    readonly headers?: MsgHdrs | undefined;
  };
};

const eventBytesLikely = 300;

/**
 * If the message replaces an erased one, the frame has no lines: `rewrittenItem` delivers them
 * under the sequence of the erased message.
 */
export function frameItem(pulled: PulledMessage, origin: FrameOrigin): FrameItem {
  const { stream } = origin.name;
  const { message } = pulled;
  const isElsewhere = rewrittenSequence(message.headers, { ...origin, stream }) !== undefined;
  if (!isElsewhere) return itemOf(pulled, origin);
  const { subject, headers, data } = message;
  const empty = { subject, headers, data: noLines };
  const item = itemOf({ ...pulled, message: empty }, origin);
  return { ...item, events: 0, release: () => pulled.share.release(data.length) };
}

/** The frame has the sequence and time of the erased message. */
export function rewrittenItem(
  { sequence, storedAtMs, message }: RewrittenFrame,
  share: Share,
  origin: FrameOrigin,
): FrameItem {
  const { subject, data, header: headers } = message;
  share.add(data.length);
  return itemOf({ message: { subject, data, headers }, sequence, storedAtMs, share }, origin);
}

export function releasing(item: FrameItem, released: () => void): FrameItem {
  const release = (): void => {
    released();
    item.release();
  };
  return { ...item, release };
}

const noLines = new Uint8Array(0);

function itemOf(
  { message, sequence, storedAtMs, share }: MessageParts,
  { name, epoch, isReread }: FrameOrigin,
): FrameItem {
  const { subject, data, headers } = message;
  const bytes = data.length;
  const frame: StoredFrame = {
    ...name,
    epoch,
    sequence,
    projectId: isOfManyProjects(subject) ? undefined : subject.slice(subject.lastIndexOf(".") + 1),
    messageId: messageIdOf(headers?.get(messageIdHeader), storedAtMs),
    storedAtMs,
    data,
  };
  const said = Number(headers?.get(eventsHeader));
  // Another publisher may send any number.
  const isLikely = Number.isInteger(said) && said >= 1 && said <= bytes;
  const events = isLikely ? said : Math.ceil(bytes / eventBytesLikely);
  return { kind: "frame", frame, events, isReread, release: () => share.release(bytes) };
}

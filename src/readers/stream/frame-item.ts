// Makes a frame of a message, as whoever reads the stream is given it.

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
  /** How many it says that it holds. */
  readonly events: number;
  /** It was read before, and is here to be remembered. */
  readonly isAgain: boolean;
  /** Its bytes are done with. */
  release(): void;
}

export interface FrameOrigin {
  readonly name: StreamName;
  readonly epoch: number;
  /** When the stream was made, as the server says it. */
  readonly created: string;
  readonly isAgain: boolean;
}

/** What of a message makes a frame. */
type Told = Pick<PulledMessage, "sequence" | "storedAtMs" | "share"> & {
  readonly message: {
    readonly subject: string;
    readonly data: Uint8Array;
    readonly headers?: MsgHdrs | undefined;
  };
};

const eventBytesLikely = 300;

/**
 * The frame of a message, under its own number. One that stands in the place of an erased message
 * is read there (`rewrittenItem`), and has no lines where it lies.
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

/** The frame in the place of an erased message, under that one's number and time. */
export function rewrittenItem(
  { sequence, storedAtMs, message }: RewrittenFrame,
  share: Share,
  origin: FrameOrigin,
): FrameItem {
  const { subject, data, header: headers } = message;
  share.add(data.length);
  return itemOf({ message: { subject, data, headers }, sequence, storedAtMs, share }, origin);
}

/** The same, whose release somebody else hears of too. */
export function releasing(item: FrameItem, released: () => void): FrameItem {
  const release = (): void => {
    released();
    item.release();
  };
  return { ...item, release };
}

const noLines = new Uint8Array(0);

function itemOf(
  { message, sequence, storedAtMs, share }: Told,
  { name, epoch, isAgain }: FrameOrigin,
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
  // Another publisher may say anything; an event has more than one byte.
  const isLikely = Number.isInteger(said) && said >= 1 && said <= bytes;
  const events = isLikely ? said : Math.ceil(bytes / eventBytesLikely);
  return { kind: "frame", frame, events, isAgain, release: () => share.release(bytes) };
}

// Makes a frame of a message, as whoever reads the stream is given it.

import { eventsHeader, isOfManyProjects, messageIdHeader } from "../nats/names.ts";
import type { PulledMessage } from "./pull.ts";
import type { StoredFrame } from "./stored-frame.ts";
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
  readonly isAgain: boolean;
}

const eventBytesLikely = 300;

export function frameItem(
  { message, sequence, storedAtMs, share }: PulledMessage,
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

// Says a notice in words, for a program that does not ask for notices.

import type { Notice } from "./types.ts";

export function noticeText(notice: Notice): string {
  switch (notice.type) {
    case "connected":
      return `connected to ${notice.server}`;
    case "disconnected":
      return `NATS is away, trying again: ${notice.reason}`;
    case "consumer_created":
      return `${notice.stream} has no consumer of this name yet: it is read from message ${notice.sequence} on`;
    case "consumer_recreated":
      return `the consumer of ${notice.stream} was deleted and is made again: it goes on from message ${notice.sequence}`;
    case "stream_missing":
      return `${notice.stream} is not there; it is waited for`;
    case "stream_recreated":
      return `${notice.stream} was made anew: it was read up to message ${notice.lastRead}, and is read from ${notice.sequence} on`;
    case "stream_truncated":
      return `${notice.stream} has lost messages that were read: it was read up to message ${notice.lastRead}, and is read from ${notice.from} on`;
    case "messages_expired":
      return `messages ${notice.from} to ${notice.to} have left ${notice.stream} before all of them were read`;
    case "unreadable_line":
      return `line ${notice.line} of message ${notice.sequence} of ${notice.stream} is not an event: ${notice.reason}${notice.lines > 1 ? ` (and ${notice.lines - 1} more lines of this message)` : ""}`;
    case "processing_timed_out":
      return `message ${notice.sequence} of ${notice.stream} was not acknowledged in time and is delivered again`;
    case "trouble":
      return `${notice.stream ?? "NATS"}: ${notice.reason}; trying again`;
  }
}

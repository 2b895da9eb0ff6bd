// The text of a notice, for a program without `onNotice`.

import type { Notice } from "./types.ts";

export function noticeText(notice: Notice): string {
  switch (notice.type) {
    case "connected":
      return `connected to ${notice.server}`;
    case "disconnected":
      return `NATS is unreachable, retrying: ${notice.reason}`;
    case "consumer_created":
      return `${notice.stream} has no consumer of this name yet: reading starts at message ${notice.sequence}`;
    case "consumer_recreated":
      return `the consumer of ${notice.stream} was deleted and is created again: reading continues at message ${notice.sequence}`;
    case "stream_missing":
      return `${notice.stream} does not exist; waiting for it`;
    case "stream_recreated":
      return `${notice.stream} was recreated: it had been read up to message ${notice.lastRead}; reading continues at ${notice.sequence}`;
    case "stream_truncated":
      return `${notice.stream} has lost messages that were read: it had been read up to message ${notice.lastRead}; reading continues at ${notice.from}`;
    case "messages_expired":
      return `messages ${notice.from} to ${notice.to} have left ${notice.stream} before all of them were read`;
    case "unreadable_line":
      return `line ${notice.line} of message ${notice.sequence} of ${notice.stream} is not an event: ${notice.reason}${notice.lines > 1 ? ` (and ${notice.lines - 1} more lines of this message)` : ""}`;
    case "processing_timed_out":
      return `message ${notice.sequence} of ${notice.stream} was not acknowledged in time and is delivered again`;
    case "trouble":
      return `${notice.stream ?? "NATS"}: ${notice.reason}; retrying`;
  }
}

// A problem of a client as the live page shows it: the types of a warning, its origin and its
// receiver. No runtime code.

import type { Problem } from "./errors.ts";

/** The origin of a warning. Unknown fields are "". */
export interface ClientWarningOrigin {
  readonly projectId: string;
  /**
   * The requested path, without parts that may be a key. If the path does not exist, only its
   * beginning.
   */
  readonly path: string;
  /** The SDK or program that sent the request and its version, from its own header. */
  readonly client: string;
}

/**
 * A problem of a client, in the words of the response, with the number of occurrences. It may
 * contain these parts of a request: a path, names that look misspelt, and the beginning of a key
 * that belongs to no project. It contains no value of an event, and no whole key.
 */
export interface ClientWarning extends ClientWarningOrigin {
  /** The wall-clock time of the last occurrence, in milliseconds since the epoch. */
  readonly atMs: number;
  /** Number of occurrences. In a flood only some per second are counted. */
  readonly times: number;
  /**
   * The status of the response. 200: the request succeeded, but some of its events are not stored.
   */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Number of events affected, over all occurrences; 0: the whole request. */
  readonly events: number;
}

/** Receives the requests that had a problem. Its calls are cheap, however many there are. */
export interface ClientWarningTaker {
  /** Whether another warning would be stored now. If not, the origin need not be determined. */
  readonly hasRoom: boolean;
  /**
   * A request was rejected with the problem. The fields of the origin are only read if the warning
   * is stored.
   */
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  /** Some events of a request are not stored; the others are. */
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

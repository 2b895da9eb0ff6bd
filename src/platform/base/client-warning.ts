// The types of a client warning: a problem of a client as shown on the live page. No runtime code.

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
 * that belongs to no project. It never contains a value of an event or a whole key.
 */
export interface ClientWarning extends ClientWarningOrigin {
  /** The wall-clock time of the last occurrence, in milliseconds since the epoch. */
  readonly atMs: number;
  /** Number of occurrences. In a flood only some per second are counted. */
  readonly times: number;
  /** The status of the response. If it is 200, some events of the request are not stored. */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Number of affected events over all occurrences; 0 if whole requests are affected. */
  readonly events: number;
}

/** Receives the problems of requests. Its methods must be cheap even in a flood. */
export interface ClientWarningTaker {
  /**
   * Whether another warning would be stored now. If not, the caller need not determine the origin.
   */
  readonly hasRoom: boolean;
  /**
   * Records that a request was rejected with the problem. Reads the fields of the origin only if
   * the warning is stored.
   */
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  /** Records that some events of a request are not stored. The other events are stored. */
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

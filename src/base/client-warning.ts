// What went wrong for a client, as people who watch are told: where it comes from, what it says,
// and who is told of it. No runtime code.

import type { Problem } from "./errors.ts";

/** Where a warning comes from. Each is "" where it is not known. */
export interface ClientWarningOrigin {
  readonly projectId: string;
  /**
   * As it was asked for, without what may be a key; of a path at which there is nothing, the
   * beginning.
   */
  readonly path: string;
  /** Which SDK or program, by its own word, and how far it is in its versions. */
  readonly client: string;
}

/**
 * One thing that went wrong for a client, as it was told, once or several times. Of what was sent
 * it may hold a path, names that look like slips, and the beginning of a key that nobody has: no
 * value of an event, and no key.
 */
export interface ClientWarning extends ClientWarningOrigin {
  /** Wall clock, milliseconds since the epoch; of the last time. */
  readonly atMs: number;
  /** How often, of those times that are kept account of: of a flood, some a second. */
  readonly times: number;
  /** The answer's. 200: the request was answered well, but some of its events are not stored. */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** How many events it is about, in all; 0: the whole request. */
  readonly events: number;
}

/** Hears of requests that did not end well. Cheap however often it is called. */
export interface ClientWarningTaker {
  /** Whether another warning would be kept now: it is worth finding out where it comes from. */
  readonly hasRoom: boolean;
  /** A request was answered with the problem. The origin is read if the warning is kept. */
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  /** Some events of a request are not stored, and the rest is. */
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

// What went wrong for a client, in the form that people who watch are shown: where the warning
// comes from, what it says, and who takes it. No runtime code.

import type { Problem } from "./errors.ts";

/** Where a warning comes from. Each field is "" where it is not known. */
export interface ClientWarningOrigin {
  readonly projectId: string;
  /**
   * The path that was asked for, without parts that may be a key. If nothing is at this path, only
   * its beginning.
   */
  readonly path: string;
  /** The SDK or program that sent the request and its version, as it names itself. */
  readonly client: string;
}

/**
 * One thing that went wrong for a client, in the words that the client got, once or several times.
 * It may hold these parts of a request: a path, names that look like slips, and the beginning of a
 * key that belongs to no project. It holds no value of an event, and no key.
 */
export interface ClientWarning extends ClientWarningOrigin {
  /** When this happened last, by the wall clock, in milliseconds since the epoch. */
  readonly atMs: number;
  /** How often this happened. In a flood only some times of each second are counted. */
  readonly times: number;
  /**
   * The status of the answer. 200: the request was answered well, but some of its events are not
   * stored.
   */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** How many events this is about, over all times; 0: the whole request. */
  readonly events: number;
}

/** Is told of requests that did not end well. Its calls are cheap, however many there are. */
export interface ClientWarningTaker {
  /** Whether another warning would be kept now. If not, its origin need not be found out. */
  readonly hasRoom: boolean;
  /**
   * A request was answered with the problem. The origin's fields are read only if the warning is
   * kept.
   */
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  /** Some events of a request are not stored; the rest of them are. */
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

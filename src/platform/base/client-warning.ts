import type { Problem } from "./errors.ts";

/** Unknown fields are "". */
export interface ClientWarningOrigin {
  readonly projectId: string;
  /** The path has no parts that may be a key. An unknown path is cut. */
  readonly path: string;
  /** The SDK or program and its version, from its own header. */
  readonly client: string;
}

/** A warning may contain a path, misspelt names and the beginning of an unknown key. */
export interface ClientWarning extends ClientWarningOrigin {
  readonly atMs: number;
  /** The number of occurrences. In a flood only some per second are counted. */
  readonly times: number;
  /** If the status is 200, some events of the request are not stored. */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Affected events over all occurrences; 0 if whole requests are affected. */
  readonly events: number;
}

/** Its methods must be cheap even in a flood. */
export interface ClientWarningTaker {
  /** Whether another warning would be stored. If not, callers can save work. */
  readonly hasRoom: boolean;
  /** A whole request was rejected. Reads the origin only if the warning is stored. */
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

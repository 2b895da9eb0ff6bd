import type { Problem } from "./errors.ts";

/** The sender of a request. Unknown fields are "". */
export interface ClientWarningOrigin {
  readonly projectId: string;
  /** The path, shortened, and without parts that may be a key. */
  readonly path: string;
  /** The SDK or program and its version, from its own header. */
  readonly client: string;
}

/** A problem of requests. May contain a path, misspelt names and the start of an unknown key. */
export interface ClientWarning extends ClientWarningOrigin {
  readonly atMs: number;
  /** The number of occurrences. In a flood only some per second are counted. */
  readonly times: number;
  /** Status of the responses. With 200, some events of the request are not stored. */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Number of affected events over all occurrences; 0 if whole requests are affected. */
  readonly events: number;
}

/** Receives client problems. Its methods must be cheap even in a flood. */
export interface ClientWarningTaker {
  /** Whether another warning would be stored. If not, callers can save work. */
  readonly hasRoom: boolean;
  /** Records the rejection of a whole request. Reads the origin only if the warning is stored. */
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

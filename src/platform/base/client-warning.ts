import type { Problem } from "./errors.ts";

/** The sender of a request. Unknown fields are "". */
export interface ClientWarningOrigin {
  readonly projectId: string;
  /** The path, shortened and without parts that may be a key. */
  readonly path: string;
  /** The name and version of the SDK or program, from its own header. */
  readonly client: string;
}

/** A problem with requests. May contain a path, misspelt names and the start of an unknown key. */
export interface ClientWarning extends ClientWarningOrigin {
  readonly atMs: number;
  /** The number of occurrences. In a flood, only some occurrences per second are counted. */
  readonly times: number;
  /** Status of the responses. With 200, some events of the request were not stored. */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Number of affected events in all occurrences; 0 if whole requests are affected. */
  readonly events: number;
}

/** Receives client problems. The methods must be cheap even in a flood. */
export interface ClientWarningTaker {
  /** Whether a new warning would be stored. If not, callers can save work. */
  readonly hasRoom: boolean;
  /** Records the rejection of a request. Reads the origin only if the warning is stored. */
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

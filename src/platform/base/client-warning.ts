import type { Problem } from "./errors.ts";

export interface ClientWarningOrigin {
  readonly projectId: string;
  readonly path: string;
  readonly client: string;
}

/**
 * A problem with the requests of a client. The text can include a path, misspelt names, and the
 * beginning of an unknown key.
 */
export interface ClientWarning extends ClientWarningOrigin {
  readonly atMs: number;
  readonly times: number;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly events: number;
}

export interface ClientWarningTaker {
  readonly hasRoom: boolean;
  refused(origin: ClientWarningOrigin, problem: Problem): void;
  notStored(
    origin: ClientWarningOrigin,
    why: Pick<ClientWarning, "code" | "detail" | "events">,
  ): void;
}

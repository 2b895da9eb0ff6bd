import type { Problem } from "./errors.ts";

export interface ClientWarningOrigin {
  readonly projectId: string;
  readonly path: string;
  readonly client: string;
}

/** A problem with requests. May contain a path, misspelt names and the start of an unknown key. */
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

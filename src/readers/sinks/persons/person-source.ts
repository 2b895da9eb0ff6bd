// The interface to query which person a distinct id belongs to: the database of `penstock effects`.
// Types only, because sinks do not import effects; app/ connects the two.

export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

/** How far a stream is applied. */
export interface AppliedTo extends StreamMessage {
  /** Incremented when the effects notice that the stream was recreated or truncated. */
  readonly epoch: number;
  /** When the stream was created, as the server reports it. */
  readonly created: string;
  /** The id of the requested message; undefined: it is no longer remembered. */
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** An answer for one moment. If the answer to the same question changes, so does the version. */
export interface Answer<Of> {
  readonly version: string;
  readonly answer: Of;
}

/** Rejects with a StoreError while it cannot be queried. */
export interface PersonSource {
  /** Streams without applied messages are absent. */
  reached(messages: readonly StreamMessage[]): Promise<Answer<readonly AppliedTo[]>>;
  /** Project after project, in the order of the ids; null: the id has no person. */
  personUuids(ids: readonly ProjectIds[]): Promise<Answer<readonly (string | null)[]>>;
}

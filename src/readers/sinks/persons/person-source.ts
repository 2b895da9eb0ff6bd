// Queries the persons in the database of the effects. Sinks do not import effects; app/ connects
// the two.

export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

export interface AppliedTo extends StreamMessage {
  /** Incremented when the effects notice that the stream was recreated or truncated. */
  readonly epoch: number;
  /** Time when the stream was created, as the server reports it. */
  readonly created: string;
  /** Id of the message `sequence`; undefined if it is no longer known. */
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** If the answer to the same question changes, the version changes too. */
export interface Answer<Of> {
  readonly version: string;
  readonly answer: Of;
}

/** Each query rejects with a StoreError while the database cannot be queried. */
export interface PersonSource {
  /** Streams without applied messages are absent. */
  reached(messages: readonly StreamMessage[]): Promise<Answer<readonly AppliedTo[]>>;
  /** In the order of the ids, project after project; null if an id has no person. */
  personUuids(ids: readonly ProjectIds[]): Promise<Answer<readonly (string | null)[]>>;
}

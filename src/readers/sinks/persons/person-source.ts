// The interface to query the person of a distinct id from the database of `penstock effects`. Has
// only types, because sinks do not import effects; app/ connects the two.

export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

/** The position up to which the effects have applied a stream. */
export interface AppliedTo extends StreamMessage {
  /**
   * Number that is incremented when the effects notice that the stream was recreated or truncated.
   */
  readonly epoch: number;
  /** Time when the stream was created, as the server reports it. */
  readonly created: string;
  /** Id of the requested message; undefined if it is no longer remembered. */
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/**
 * An answer with its version. If the answer to the same question changes, the version changes too.
 */
export interface Answer<Of> {
  readonly version: string;
  readonly answer: Of;
}

/** The queries. Each rejects with a StoreError while the database cannot be queried. */
export interface PersonSource {
  /**
   * Returns the positions of the streams of `messages`. Streams without applied messages are
   * absent.
   */
  reached(messages: readonly StreamMessage[]): Promise<Answer<readonly AppliedTo[]>>;
  /**
   * Returns the uuids of the persons, project after project, in the order of the ids; null if an id
   * has no person.
   */
  personUuids(ids: readonly ProjectIds[]): Promise<Answer<readonly (string | null)[]>>;
}

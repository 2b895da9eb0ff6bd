// Who says which person a distinct id is: `penstock effects`, by its database. Types alone, because
// sinks know nothing of the effects; what wires both brings something of this form.

export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

/** How far a stream is applied. */
export interface AppliedTo extends StreamMessage {
  /** Goes up whenever the stream was made anew, or has lost its tail, under their eyes. */
  readonly epoch: number;
  /** When the stream was made, as the server says it. */
  readonly created: string;
  /** That of the message that was asked about; undefined: it is not remembered any more. */
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** What was so at one moment. Another answer to the same question comes with another version. */
export interface Answer<Of> {
  readonly version: string;
  readonly answer: Of;
}

/** Rejects with a StoreError while it cannot be asked. */
export interface PersonSource {
  /** Streams of which nothing is applied are absent. */
  reached(messages: readonly StreamMessage[]): Promise<Answer<readonly AppliedTo[]>>;
  /** Project after project, in the order of the ids; null: nobody has the id. */
  personUuids(ids: readonly ProjectIds[]): Promise<Answer<readonly (string | null)[]>>;
}

/** A stored event. docs/reference/event-fields.md lists its members. */
export interface StoredEvent {
  readonly uuid: string;
  readonly project_id: string;
  readonly event: string;
  readonly distinct_id: string;
  readonly timestamp: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

/** Members that the stored event must have. Objects in it may have further members. */
export interface ExpectedEvent {
  readonly event?: string;
  readonly distinct_id?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly $set?: Readonly<Record<string, unknown>>;
  readonly $set_once?: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

export interface Penstock {
  /** The host for SDKs, such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The API key for SDKs. */
  readonly key: string;
  /** The address for `connectPenstock`. In a browser, it shows a live page of the events. */
  readonly adminUrl: string;
  /**
   * Waits for an event with these members, and resolves with the first one since the last reset.
   * Rejects after `timeoutMs` (default: 3,000). The error message contains the most similar event
   * and the events that the gateway rejected.
   */
  expect(expected: ExpectedEvent, options?: { readonly timeoutMs?: number }): Promise<StoredEvent>;
  /** Returns all events since the last reset, in the order in which they were stored. */
  events(): Promise<readonly StoredEvent[]>;
  /** Removes all current events from the results of `expect` and `events`. */
  reset(): Promise<void>;
}

export interface StartedPenstock extends Penstock, AsyncDisposable {
  /** Stops the gateway and deletes its store. */
  stop(): Promise<void>;
}

export interface StartOptions {
  /** Port for events. Default: a free port. */
  readonly port?: number;
  /** Settings of the gateway, such as `PENSTOCK_BODY_BYTES_MAX`. */
  readonly env?: Readonly<Record<string, string>>;
  /** The program and its first arguments. Default: the installed package `penstock`. */
  readonly program?: readonly [string, ...string[]];
}

/** Starts a gateway with an empty store. If it does not start, rejects with its output. */
export function startPenstock(options?: StartOptions): Promise<StartedPenstock>;

/** Connects to a gateway that another process has started with `startPenstock`. */
export function connectPenstock(adminUrl: string): Promise<Penstock>;

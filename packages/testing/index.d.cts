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
  /** The address for `connectPenstock`; in a browser, a live page of the events. */
  readonly adminUrl: string;
  /**
   * Resolves with the first event since the last reset that has these members, as soon as it is
   * stored. Rejects after `timeoutMs` (3,000). The message has the nearest event and the rejections
   * of the gateway.
   */
  expect(expected: ExpectedEvent, options?: { readonly timeoutMs?: number }): Promise<StoredEvent>;
  /** Returns all events that were stored since the last reset, in order. */
  events(): Promise<readonly StoredEvent[]>;
  /** Discards the events that are stored now. */
  reset(): Promise<void>;
}

export interface StartedPenstock extends Penstock, AsyncDisposable {
  /** Ends the gateway and removes its store. */
  stop(): Promise<void>;
}

export interface StartOptions {
  /** Port for events; a free one by default. */
  readonly port?: number;
  /** Settings of the gateway, such as `PENSTOCK_BODY_BYTES_MAX`. */
  readonly env?: Readonly<Record<string, string>>;
  /** The program and its first arguments; the installed package `penstock` by default. */
  readonly program?: readonly [string, ...string[]];
}

/** Starts a gateway with an empty store. Rejects with its output if it does not start. */
export function startPenstock(options?: StartOptions): Promise<StartedPenstock>;

/** Connects to a gateway that another process has started with `startPenstock`. */
export function connectPenstock(adminUrl: string): Promise<Penstock>;

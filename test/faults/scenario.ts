// A fault scenario: a load, a fault, and the required results. Contains only types.

import type { TestNatsServer } from "../kit/nats-server.ts";
import type { Place } from "./cluster-network.ts";
import type { LoadName } from "./event-kinds.ts";
import type { Closing } from "./lost-answers.ts";
import type { Random } from "./random.ts";
import type { LoadShape } from "./senders.ts";

export interface Store {
  readonly gatewayUrl: string;
  readonly gatewayPlace?: Place;
  readonly readerUrl: string;
  readonly readerToken?: string;
  readonly replicas: number;
  readonly nodes: readonly TestNatsServer[];
  readonly proxy?: TcpProxy;
  readonly disk?: SmallDisk;
  /** Rejects if none of the given nodes leads the stream within 45 s. */
  leaderOf(stream: string, among?: readonly TestNatsServer[]): Promise<TestNatsServer>;
  remove(): Promise<void>;
}

export interface TcpProxy {
  readonly url: string;
  /** Resets every connection. Refuses new connections until `open` is called. */
  cut(): void;
  open(): void;
  /** Discards all data from nats-server: acknowledgements are lost, messages are not. */
  dropReplies(dropping: boolean): void;
  slow(delayMs: number, bytesPerSecond: number): void;
  stall(stalled: boolean): void;
  stallOneWay(direction: "toServer" | "toClient"): void;
  reset(): void;
  close(): Promise<void>;
}

export interface SmallDisk {
  fill(): void;
  free(): void;
}

export interface GatewayProcess {
  readonly url: string;
  readonly adminUrl: string;
  readonly pid: number;
  workers(): readonly number[];
  kill(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** Starts the gateway again, with the program of another release if it is given. */
  restart(program?: readonly string[]): Promise<void>;
  /** The times at which a stopping gateway closed its connections. */
  closings(): readonly Closing[];
  log(): string;
}

export interface LedgerTotals {
  readonly acknowledged: number;
  readonly lost: number;
  /**
   * Events that are in a stream more than once. Allowed only for events that were `unknown` and
   * sent again, up to the number of attempts.
   */
  readonly duplicated: number;
  readonly refused: number;
  readonly storedThoughRefused: number;
  readonly unknown: number;
  readonly storedThoughUnknown: number;
  /**
   * Acknowledged historical events that are stored out of the order of their connection. Must be 0.
   */
  readonly outOfOrder: number;
  /** Answers other than 200, the expected 4xx, or 503 with Retry-After. Must be empty. */
  readonly strangeAnswers: readonly string[];
}

export interface ScenarioContext {
  readonly store: Store;
  readonly gateway: GatewayProcess;
  readonly faultMs: number;
  readonly recoveryMsMax: number;
  readonly seed: number;
  readonly natsVersion: string;
  acknowledged(events: number): Promise<void>;
  untilRefused(label: string): Promise<void>;
  hold(ms: number): Promise<void>;
  note(text: string): void;
  fillStreams(): Promise<void>;
  emptyStreams(): Promise<void>;
  givenUpBody(events: number): Buffer;
  readonly clock?: { stepMs(ms: number): void };
}

type Topology = "single" | "cluster" | "networked" | "proxied" | "embedded";

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly topology: Topology;
  readonly env?: Readonly<Record<string, string>>;
  readonly faultMs: { readonly short: number; readonly full: number };
  readonly diskBytes?: number;
  readonly fileStoreBytesMax?: number;
  /** The gateway runs in this process, with a clock that can be set. Topology `single` only. */
  readonly inProcess?: boolean;
  /**
   * Connections may close without an answer, because the fault ends their process. Default: false.
   */
  readonly mayLoseConnections?: boolean;
  /**
   * The maximum number of requests without an answer that were written before the gateway closed
   * its connections. Default: any number if connections may be lost.
   */
  readonly answersLostMax?: number;
  readonly onDisk?: boolean;
  /**
   * The delay in milliseconds from the gateway to the store and back. Default: none. Not for
   * topology `embedded`.
   */
  readonly delayMs?: (random: Random) => number;
  readonly shape?: LoadShape;
  /**
   * nats-server loses acknowledged data in this scenario. A gateway cannot prevent the loss, but
   * must report it.
   */
  readonly knownLoss?: {
    readonly before?: string;
    readonly source: string;
    readonly isSilent?: boolean;
  };
  /**
   * The gateway may reject every request during the fault. If false, the fault must affect no
   * request.
   */
  readonly mayRefuse: boolean;
  /**
   * The gateway must answer 200 again within 3 s of the end of the cause, without help. False only
   * if the fault is the end of the gateway.
   */
  readonly mustRecover: boolean;
  run(context: ScenarioContext): Promise<void>;
}

export interface ScenarioResult extends LedgerTotals {
  readonly scenario: string;
  readonly load: LoadName;
  readonly natsVersion: string;
  /**
   * The time from the end of the cause to the first 200 of a run without a break of 500 ms.
   * undefined if no request was rejected.
   */
  readonly recoveryMs: number | undefined;
  readonly faults: readonly string[];
}

// A fault scenario: a load, a fault, and what must hold afterwards. Contains only types.

import type { TestNatsServer } from "../kit/nats-server.ts";
import type { Place } from "./cluster-network.ts";
import type { LoadName } from "./event-kinds.ts";
import type { Closing } from "./lost-answers.ts";
import type { Random } from "./random.ts";
import type { LoadShape } from "./senders.ts";

export interface Store {
  /** The gateway's PENSTOCK_NATS_URL: may lead through a proxy. */
  readonly gatewayUrl: string;
  readonly gatewayPlace?: Place;
  /** The URL for the ledger's reads, never through a proxy. */
  readonly readerUrl: string;
  readonly readerToken?: string;
  readonly replicas: number;
  readonly nodes: readonly TestNatsServer[];
  readonly proxy?: TcpProxy;
  /** The store's disk, if the scenario requested a small one and this process may mount one. */
  readonly disk?: SmallDisk;
  /**
   * The node that leads the stream, among those given. Rejects if there is no leader within 45 s.
   */
  leaderOf(stream: string, among?: readonly TestNatsServer[]): Promise<TestNatsServer>;
  remove(): Promise<void>;
}

export interface TcpProxy {
  readonly url: string;
  /** Resets every connection. New ones are refused until `open`. */
  cut(): void;
  open(): void;
  /** Discards what nats-server sends: acknowledgements are lost, messages are not. */
  dropReplies(dropping: boolean): void;
  /** Delays bytes, and limits them per second in each direction; 0 is no limit. */
  slow(delayMs: number, bytesPerSecond: number): void;
  /** Nothing passes, and the connections stay open. */
  stall(stalled: boolean): void;
  /** Nothing passes one way; `stall(false)` ends it. */
  stallOneWay(direction: "toServer" | "toClient"): void;
  /** Resets every connection and loses its data. New ones are accepted. */
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
  restart(): Promise<void>;
  /** Each time at which the gateway closed its connections because it was stopped. */
  closings(): readonly Closing[];
  log(): string;
}

export interface LedgerTotals {
  readonly acknowledged: number;
  readonly lost: number;
  /**
   * Events that are in a stream more than once. Allowed only for events that were `unknown` and
   * sent again, and no more often than they were sent.
   */
  readonly duplicated: number;
  /** Events that were rejected with a 4xx, or with a 503 that guarantees they are not stored. */
  readonly refused: number;
  readonly storedThoughRefused: number;
  readonly unknown: number;
  readonly storedThoughUnknown: number;
  /**
   * Acknowledged historical events stored out of the order in which their connection sent them.
   * Must be 0.
   */
  readonly outOfOrder: number;
  /**
   * Answers that are neither 200, nor the expected 4xx, nor 503 with Retry-After. Must be empty.
   */
  readonly strangeAnswers: readonly string[];
}

export interface ScenarioContext {
  readonly store: Store;
  readonly gateway: GatewayProcess;
  readonly faultMs: number;
  readonly recoveryMsMax: number;
  readonly seed: number;
  readonly natsVersion: string;
  /** Resolves when this many more events have been acknowledged. Rejects after 30 s. */
  acknowledged(events: number): Promise<void>;
  /**
   * Resolves when an answer whose label starts with this text ("503 store_full") has arrived from
   * now on. Rejects after 30 s.
   */
  untilRefused(label: string): Promise<void>;
  hold(ms: number): Promise<void>;
  note(text: string): void;
  /** Fills every stream to its limit, in addition to what the load stores. */
  fillStreams(): Promise<void>;
  emptyStreams(): Promise<void>;
  /**
   * A valid batch that the ledger treats as unknown: for clients that do not wait for the answer.
   */
  givenUpBody(events: number): Buffer;
  readonly clock?: { stepMs(ms: number): void };
}

/** `networked` is a cluster whose nodes and gateway are connected by a network that can be cut. */
type Topology = "single" | "cluster" | "networked" | "proxied" | "embedded";

export interface Scenario {
  /** In kebab-case: `nats-killed`. */
  readonly name: string;
  readonly title: string;
  readonly topology: Topology;
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds of fault: in `npm test`, and in `npm run faults`. */
  readonly faultMs: { readonly short: number; readonly full: number };
  /** The store is on a disk of this size. Topologies `single` and `embedded` only. */
  readonly diskBytes?: number;
  readonly fileStoreBytesMax?: number;
  /** The gateway runs in this process, with a clock that can be set. Topology `single` only. */
  readonly inProcess?: boolean;
  /**
   * Connections may close without an answer: the fault ends a process that has them. Default false.
   */
  readonly mayLoseConnections?: boolean;
  /**
   * The maximum number of requests, written before the gateway closed its connections, that may get
   * no answer. Default: any number, if connections may be lost.
   */
  readonly answersLostMax?: number;
  /**
   * The stores are on a disk whose unwritten pages can be determined, if there is one. Topology
   * `cluster` only.
   */
  readonly onDisk?: boolean;
  /**
   * The gateway's delay to the store in milliseconds, each way. Default: none. Not for topology
   * `embedded`.
   */
  readonly delayMs?: (random: Random) => number;
  readonly shape?: LoadShape;
  /**
   * nats-server loses acknowledged data in this scenario, which no gateway can prevent. The gateway
   * must report it, by being unready or in its log.
   */
  readonly knownLoss?: {
    readonly before?: string;
    readonly source: string;
    /** True if the gateway cannot detect the loss, because it sees no sign of it. */
    readonly isSilent?: boolean;
  };
  /**
   * If true, every answer during the fault may be a rejection. If false, the fault must affect no
   * request (e.g. one node of three).
   */
  readonly mayRefuse: boolean;
  /**
   * The gateway must return to 200s within 3 s of the cause's end, by itself. True unless the fault
   * is the gateway's own death.
   */
  readonly mustRecover: boolean;
  /** Causes the fault and ends it; returns when the cause has ended. */
  run(context: ScenarioContext): Promise<void>;
}

export interface ScenarioResult extends LedgerTotals {
  readonly scenario: string;
  readonly load: LoadName;
  readonly natsVersion: string;
  /**
   * The time from the end of the cause to the first of the 200s that follow without a break of 500
   * ms; undefined if nothing was rejected.
   */
  readonly recoveryMs: number | undefined;
  /** The broken promises; empty if all held. */
  readonly faults: readonly string[];
}

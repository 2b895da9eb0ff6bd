// A fault scenario: a load, a fault, and the required results. Contains only types.

import type { TestNatsServer } from "../kit/nats-server.ts";
import type { Place } from "./cluster-network.ts";
import type { LoadName } from "./event-kinds.ts";
import type { Closing } from "./lost-answers.ts";
import type { Random } from "./random.ts";
import type { LoadShape } from "./senders.ts";

export interface Store {
  /** The gateway's PENSTOCK_NATS_URL, which may be the address of a proxy. */
  readonly gatewayUrl: string;
  readonly gatewayPlace?: Place;
  /** The URL from which the ledger reads; never a proxy. */
  readonly readerUrl: string;
  readonly readerToken?: string;
  readonly replicas: number;
  readonly nodes: readonly TestNatsServer[];
  readonly proxy?: TcpProxy;
  /** The small disk of the store, if the scenario requested it and this process may mount it. */
  readonly disk?: SmallDisk;
  /**
   * Returns the node among the given nodes that leads the stream. Rejects if there is no leader
   * within 45 s.
   */
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
  /** Delays bytes, and limits the bytes per second in each direction; 0 is no limit. */
  slow(delayMs: number, bytesPerSecond: number): void;
  /** Stops all data. Connections stay open. */
  stall(stalled: boolean): void;
  /** Stops all data in one direction. `stall(false)` ends it. */
  stallOneWay(direction: "toServer" | "toClient"): void;
  /** Resets every connection, and loses the data of the connections. Accepts new connections. */
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
  /**
   * Events that were rejected with a 4xx, or with a 503 that guarantees that they are not stored.
   */
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
  /** Resolves when this many more events have been acknowledged. Rejects after 30 s. */
  acknowledged(events: number): Promise<void>;
  /**
   * Resolves when a new answer arrives whose label starts with this text ("503 store_full").
   * Rejects after 30 s.
   */
  untilRefused(label: string): Promise<void>;
  hold(ms: number): Promise<void>;
  note(text: string): void;
  /** Fills every stream to its limit, in addition to the events of the load. */
  fillStreams(): Promise<void>;
  emptyStreams(): Promise<void>;
  /**
   * A valid batch whose outcome is unknown to the ledger: for clients that do not wait for the
   * answer.
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
  /** Duration of the fault in milliseconds: in `npm test`, and in `npm run faults`. */
  readonly faultMs: { readonly short: number; readonly full: number };
  /** The store is on a disk of this size. Topologies `single` and `embedded` only. */
  readonly diskBytes?: number;
  readonly fileStoreBytesMax?: number;
  /**
   * If true, the gateway runs in this process, with a clock that can be set. Topology `single`
   * only.
   */
  readonly inProcess?: boolean;
  /**
   * If true, connections may close without an answer, because the fault ends their process.
   * Default: false.
   */
  readonly mayLoseConnections?: boolean;
  /**
   * The maximum number of requests without an answer that were written before the gateway closed
   * its connections. Default: any number if connections may be lost.
   */
  readonly answersLostMax?: number;
  /**
   * If true, the stores are on a disk whose unwritten pages can be determined, if such a disk is
   * available. Topology `cluster` only.
   */
  readonly onDisk?: boolean;
  /**
   * The delay in milliseconds from the gateway to the store and back. Default: none. Not for
   * topology `embedded`.
   */
  readonly delayMs?: (random: Random) => number;
  readonly shape?: LoadShape;
  /**
   * If true, nats-server loses acknowledged data in this scenario. A gateway cannot prevent the
   * loss, but must report it by being unready or in its log.
   */
  readonly knownLoss?: {
    readonly before?: string;
    readonly source: string;
    /** If true, the gateway cannot detect the loss. */
    readonly isSilent?: boolean;
  };
  /**
   * If true, the gateway may reject every request during the fault. If false, the fault must affect
   * no request (e.g. one node of three).
   */
  readonly mayRefuse: boolean;
  /**
   * Whether the gateway must answer 200 again within 3 s of the end of the cause, without help.
   * False only if the fault is the end of the gateway.
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
   * The time from the end of the cause to the first 200 of a run without a break of 500 ms.
   * Undefined if no request was rejected.
   */
  readonly recoveryMs: number | undefined;
  /** The broken promises; empty if no promise was broken. */
  readonly faults: readonly string[];
}

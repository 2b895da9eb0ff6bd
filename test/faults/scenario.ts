// A fault scenario: a load, a cause, the cause's end, and what must hold afterwards. The runner
// starts the store and the gateway, drives the load, calls the scenario, waits for recovery, and
// settles the ledger. Contains only types.

import type { TestNatsServer } from "../kit/nats-server.ts";
import type { Place } from "./cluster-network.ts";
import type { LoadName } from "./event-kinds.ts";
import type { Closing } from "./lost-answers.ts";
import type { Random } from "./random.ts";
import type { LoadShape } from "./senders.ts";

/** Where the events are stored: real nats-servers, as separate processes on loopback. */
export interface Store {
  /** The gateway's PENSTOCK_NATS_URL: may lead through a proxy. */
  readonly gatewayUrl: string;
  /** Where the gateway must run to reach `gatewayUrl`. Default: here. */
  readonly gatewayPlace?: Place;
  /** The URL for the ledger's reads, never through a proxy. */
  readonly readerUrl: string;
  /** The reader's token, if the servers require one. */
  readonly readerToken?: string;
  readonly replicas: number;
  /** One, or the members of the cluster. */
  readonly nodes: readonly TestNatsServer[];
  readonly proxy?: TcpProxy;
  /**
   * The store's disk, if the scenario requested a small one and this process may mount.
   */
  readonly disk?: SmallDisk;
  /**
   * The node that leads the stream, among those given. Rejects if there is no leader within 45 s.
   */
  leaderOf(stream: string, among?: readonly TestNatsServer[]): Promise<TestNatsServer>;
  remove(): Promise<void>;
}

/** A proxy between gateway and nats-server. Passes everything at first. */
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

/** A disk that can really be filled. */
export interface SmallDisk {
  /** Leaves no byte free. */
  fill(): void;
  /** Frees what `fill` took. */
  free(): void;
}

/** The gateway as a separate process, as users run it. */
export interface GatewayProcess {
  readonly url: string;
  readonly adminUrl: string;
  /** The pid of the current gateway process; changes with a restart. */
  readonly pid: number;
  /** Pids of its workers; empty with one process. */
  workers(): readonly number[];
  kill(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** Starts it again on the same port with the same settings. */
  restart(): Promise<void>;
  /** When it closed its connections because it was stopped. */
  closings(): readonly Closing[];
  /** Its whole log. */
  log(): string;
}

/** The answers about the events, and the content of the streams. */
export interface LedgerTotals {
  readonly acknowledged: number;
  /** Acknowledged and not in a stream. Must be 0. */
  readonly lost: number;
  /**
   * In a stream more than once. Allowed only for events that were `unknown` and sent again, and no
   * more often than they were sent.
   */
  readonly duplicated: number;
  /** Rejected with a 4xx, or a 503 that guarantees they are not stored. */
  readonly refused: number;
  /** Events rejected with a 4xx but in a stream. Must be 0. */
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
  /** How long the fault lasts in this form of the scenario. */
  readonly faultMs: number;
  /** How long the gateway may take to return to 200s. */
  readonly recoveryMsMax: number;
  /** The seed of all random choices. */
  readonly seed: number;
  /** The version of nats-server, as it reports it. */
  readonly natsVersion: string;
  /** Resolves when this many more events have been acknowledged. Rejects after 30 s. */
  acknowledged(events: number): Promise<void>;
  /**
   * Resolves when an answer whose label starts with this text ("503 store_full") has arrived from
   * now on. Rejects after 30 s.
   */
  untilRefused(label: string): Promise<void>;
  /** Waits on the monotonic clock; for the length of a fault, never for a result. */
  hold(ms: number): Promise<void>;
  note(text: string): void;
  /** Fills every stream to its limit, in addition to what the load stores. */
  fillStreams(): Promise<void>;
  /** Removes, as a client would, what `fillStreams` stored. */
  emptyStreams(): Promise<void>;
  /**
   * A valid batch that the ledger treats as unknown: for clients that do not wait for the answer.
   */
  givenUpBody(events: number): Buffer;
  /** The gateway's wall clock, in a scenario with `inProcess`. */
  readonly clock?: { stepMs(ms: number): void };
}

/**
 * `networked`: a cluster whose nodes and gateway are connected by a network that can be cut.
 * cut.
 */
type Topology = "single" | "cluster" | "networked" | "proxied" | "embedded";

export interface Scenario {
  /** In kebab-case: `nats-killed`. */
  readonly name: string;
  /** For the table: "nats-server is killed and restarted". */
  readonly title: string;
  readonly topology: Topology;
  /** PENSTOCK_* variables in addition to the runner's. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds of fault: in `npm test`, and in `npm run faults`. */
  readonly faultMs: { readonly short: number; readonly full: number };
  /** The store is on a disk of this size. Topologies `single` and `embedded` only. */
  readonly diskBytes?: number;
  /** Maximum total size of JetStream's files. Topology `single` only. */
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
  /** The load, instead of the form's. */
  readonly shape?: LoadShape;
  /**
   * nats-server loses acknowledged data in this scenario, which no gateway can prevent. The gateway
   * must report it, by being unready or in its log.
   */
  readonly knownLoss?: {
    /** This version and newer ones lose nothing. Absent: no such version is known. */
    readonly before?: string;
    /** The upstream issue. */
    readonly source: string;
    /** True if the gateway cannot detect the loss, because it sees no sign of it. */
    readonly isSilent?: boolean;
  };
  /**
   * Every answer during the fault may be a rejection. False: the fault must affect no request (e.g.
   * one node of three).
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
   * From the cause's end to the first of the 200s that follow without a break of 500 ms; undefined
   * if nothing was rejected.
   */
  readonly recoveryMs: number | undefined;
  /** The broken promises; empty if all held. */
  readonly faults: readonly string[];
}

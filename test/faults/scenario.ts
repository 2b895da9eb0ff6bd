// What a fault scenario is: a load, a cause, the cause's end, and what must hold afterwards. The
// runner brings up the store and the gateway, drives the load, calls the scenario, waits for
// recovery, and settles the ledger. Holds types only.

import type { TestNatsServer } from "../kit/nats-server.ts";
import type { Place } from "./cluster-network.ts";
import type { LoadName } from "./event-kinds.ts";
import type { Closing } from "./lost-answers.ts";
import type { Random } from "./random.ts";
import type { LoadShape } from "./senders.ts";

/** Where the events go. All of it is real nats-servers, as processes of their own on loopback. */
export interface Store {
  /** What the gateway connects to, as PENSTOCK_NATS_URL: may lead through a proxy. */
  readonly gatewayUrl: string;
  /** Where the gateway has to run to reach `gatewayUrl`. Default: here. */
  readonly gatewayPlace?: Place;
  /** What the ledger reads from, never through a proxy. */
  readonly readerUrl: string;
  /** The reader's token, where the servers ask for one. */
  readonly readerToken?: string;
  readonly replicas: number;
  /** One, or the members of the cluster. */
  readonly nodes: readonly TestNatsServer[];
  readonly proxy?: TcpProxy;
  /**
   * What the store lies on, where the scenario asked for a small one and this process may mount.
   */
  readonly disk?: SmallDisk;
  /**
   * The node that leads the stream, of those named. Rejects when there is no leader within 45 s.
   */
  leaderOf(stream: string, among?: readonly TestNatsServer[]): Promise<TestNatsServer>;
  remove(): Promise<void>;
}

/** Stands between gateway and nats-server. Everything is off at first. */
export interface TcpProxy {
  readonly url: string;
  /** Resets every connection. New ones are refused until `open`. */
  cut(): void;
  open(): void;
  /** What nats-server says is thrown away: acks are lost, messages are not. */
  dropReplies(dropping: boolean): void;
  /** Bytes pass this late, and no faster than so many a second each way; 0 is no limit. */
  slow(delayMs: number, bytesPerSecond: number): void;
  /** Nothing passes, and the connections stay open. */
  stall(stalled: boolean): void;
  /** Nothing passes one way; `stall(false)` ends it. */
  stallOneWay(direction: "toServer" | "toClient"): void;
  /** Resets every connection, with what it held. New ones are taken. */
  reset(): void;
  close(): Promise<void>;
}

/** A disk that can be full for real. */
export interface SmallDisk {
  /** Leaves no byte free. */
  fill(): void;
  /** Gives back what `fill` took. */
  free(): void;
}

/** The gateway as a process of its own, as users run it. */
export interface GatewayProcess {
  readonly url: string;
  readonly adminUrl: string;
  /** The pid of the gateway's process that runs now; another one after a restart. */
  readonly pid: number;
  /** Pids of its workers, empty with one process. */
  workers(): readonly number[];
  kill(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** Starts it again on the same port with the same settings. */
  restart(): Promise<void>;
  /** When it closed its connections because it was told to stop. */
  closings(): readonly Closing[];
  /** All it has logged. */
  log(): string;
}

/** What was said of the events, and what the streams hold. */
export interface LedgerTotals {
  readonly acknowledged: number;
  /** Acknowledged and not in a stream. Must be 0. */
  readonly lost: number;
  /**
   * In a stream more than once. Only events that were `unknown` and sent again may be, and no more
   * often than they were sent.
   */
  readonly duplicated: number;
  /** Refused with a 4xx, or a 503 that says certainly not stored. */
  readonly refused: number;
  /** Events refused with a 4xx and in a stream all the same. Must be 0. */
  readonly storedThoughRefused: number;
  readonly unknown: number;
  readonly storedThoughUnknown: number;
  /**
   * Acknowledged historical events stored out of the order in which their connection sent them.
   * Must be 0.
   */
  readonly outOfOrder: number;
  /**
   * Answers that are neither 200, nor the 4xx asked for, nor 503 with Retry-After. Must be empty.
   */
  readonly strangeAnswers: readonly string[];
}

export interface ScenarioContext {
  readonly store: Store;
  readonly gateway: GatewayProcess;
  /** How long the fault lasts in this form of the scenario. */
  readonly faultMs: number;
  /** How long the gateway may take to come back to 200s. */
  readonly recoveryMsMax: number;
  /** The seed of all that is left to chance. */
  readonly seed: number;
  /** The version of nats-server, as it names itself. */
  readonly natsVersion: string;
  /** Fulfilled when this many more events have been acknowledged. Rejects after 30 s. */
  acknowledged(events: number): Promise<void>;
  /**
   * Fulfilled when an answer whose label starts so ("503 store_full") has come from now on. Rejects
   * after 30 s.
   */
  untilRefused(label: string): Promise<void>;
  /** Waits on the monotonic clock; for the length of a fault, never for a result. */
  hold(ms: number): Promise<void>;
  note(text: string): void;
  /** Fills every stream to its limit, beside what the load stores. */
  fillStreams(): Promise<void>;
  /** Takes away again, as a client would, what `fillStreams` stored. */
  emptyStreams(): Promise<void>;
  /**
   * A good batch that the ledger takes for unknown: for clients that do not wait for the answer.
   */
  givenUpBody(events: number): Buffer;
  /** The gateway's wall clock, in a scenario with `inProcess`. */
  readonly clock?: { stepMs(ms: number): void };
}

/**
 * `networked`: a cluster whose nodes and gateway reach one another through a network that can be
 * cut.
 */
type Topology = "single" | "cluster" | "networked" | "proxied" | "embedded";

export interface Scenario {
  /** In kebab-case: `nats-killed`. */
  readonly name: string;
  /** For the table: "nats-server is killed and restarted". */
  readonly title: string;
  readonly topology: Topology;
  /** PENSTOCK_* variables beyond the runner's. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds of fault: in `npm test`, and in `npm run faults`. */
  readonly faultMs: { readonly short: number; readonly full: number };
  /** The store is on a disk of this size. Topologies `single` and `embedded` only. */
  readonly diskBytes?: number;
  /** What JetStream may keep on disk in all. Topology `single` only. */
  readonly fileStoreBytesMax?: number;
  /** The gateway runs in this process, with a clock that can be set. Topology `single` only. */
  readonly inProcess?: boolean;
  /**
   * Connections may end without an answer: the fault is the end of a process that has them. Default
   * false.
   */
  readonly mayLoseConnections?: boolean;
  /**
   * At most so many requests that were written before the gateway closed its connections may get no
   * answer. Default: any number, where connections may be lost.
   */
  readonly answersLostMax?: number;
  /**
   * The stores lie on a disk whose unwritten pages can be told, where there is one. Topology
   * `cluster` only.
   */
  readonly onDisk?: boolean;
  /**
   * How far the gateway is from the store: bytes pass so many milliseconds late, each way. Default:
   * next door. Not for topology `embedded`.
   */
  readonly delayMs?: (random: Random) => number;
  /** What is sent, in place of the form's. */
  readonly shape?: LoadShape;
  /**
   * nats-server loses what it has acknowledged when this happens, and nothing in the gateway can
   * help it: then the gateway must have told, by being unready or in its log.
   */
  readonly knownLoss?: {
    /** This version and newer ones lose nothing. Absent: no version is known that does not. */
    readonly before?: string;
    /** Where its makers speak of it. */
    readonly source: string;
    /** True when the gateway cannot tell, because nothing of the loss reaches it. */
    readonly isSilent?: boolean;
  };
  /**
   * Every answer during the fault may be a refusal. False: the fault must cost nobody anything
   * (e.g. one node of three).
   */
  readonly mayRefuse: boolean;
  /**
   * The gateway must come to 200s within 3 s of the cause's end, by itself. True unless the fault
   * is the gateway's own death.
   */
  readonly mustRecover: boolean;
  /** Causes the fault and ends it; returns at the moment the cause has ended. */
  run(context: ScenarioContext): Promise<void>;
}

export interface ScenarioResult extends LedgerTotals {
  readonly scenario: string;
  readonly load: LoadName;
  readonly natsVersion: string;
  /**
   * From the cause's end to the first of the 200s that follow without a break of 500 ms; undefined
   * where nothing was refused.
   */
  readonly recoveryMs: number | undefined;
  /** What broke a promise; empty when all held. */
  readonly faults: readonly string[];
}

// The fault scenarios in their short form. The runs with a cluster are in one file, so that they
// run one after another. `npm run faults` runs the same scenarios longer and on more nats-servers.

import { frameMsMax } from "../../../src/gateway/publish/in-flight.ts";

/** Never, at least once, or more than 100 times. */
export type Count = "none" | "some" | "over 100";

export interface ShortRun {
  readonly scenario: string;
  readonly shows: string;
  readonly load?: "projects" | "rules";
  readonly server?: "oldest";
  /**
   * Proxies work everywhere. Namespaces, if available, cut like a real network. Default: proxies.
   */
  readonly network?: "proxies" | "namespaces where they can be made";
  readonly timeoutMs?: number;
  readonly answers?: Readonly<Record<string, Count>>;
  readonly events?: Readonly<
    Partial<Record<"lost" | "duplicated" | "unknown" | "storedThoughUnknown", Count>>
  >;
  readonly notes?: number;
}

export const singleRuns: readonly ShortRun[] = [
  {
    scenario: "nats-killed-again-and-again",
    shows: "every acknowledged event is stored once if nats-server is killed repeatedly",
    server: "oldest",
    timeoutMs: 180_000,
    answers: { "503 unavailable": "some" },
  },
  {
    scenario: "nats-killed-again-and-again",
    load: "projects",
    shows: "every acknowledged frame of an atomic batch is stored once",
    answers: { "503 unavailable": "some" },
  },
  {
    scenario: "shared-frames-nats-killed",
    shows: "shared frames lose no acknowledged event if nats-server is killed twice",
    answers: { "200": "over 100" },
  },
  {
    scenario: "nats-frozen-briefly",
    shows: "requests survive a nats-server that is frozen for less than their deadline",
    answers: { error: "none" },
    events: { unknown: "none" },
  },
  {
    scenario: "nats-frozen-long",
    shows: "requests that exceed their deadline get 503 timeout",
    answers: { "503 timeout": "some" },
  },
  {
    scenario: "stream-full",
    shows: "events for full streams get 503 store_full until there is room",
    answers: { "503 store_full": "some" },
  },
  {
    scenario: "project-floods-in-bursts",
    shows: "a flood of compressed bursts ends at its project's share",
    timeoutMs: 120_000,
    answers: { "503": "none" },
  },
  {
    scenario: "project-has-much-beside-flood",
    shows: "a project with most of a stream continues during another project's flood",
    timeoutMs: 120_000,
    answers: { "503": "none" },
  },
  {
    scenario: "server-limit",
    shows: "events are rejected while the server has no space for any stream",
    answers: { "503 store_full": "some" },
  },
  {
    scenario: "store-not-restored",
    shows: "no event is accepted while the streams are missing",
    answers: { "503": "some" },
  },
  {
    scenario: "disk-full",
    shows: "a disk that becomes full during writes loses no acknowledged event",
    answers: { "503": "some" },
    notes: 1,
  },
  {
    scenario: "gateway-killed",
    shows: "a gateway that is killed under load has stored every acknowledged event",
    answers: { error: "some" },
  },
  {
    scenario: "gateway-killed",
    load: "rules",
    shows: "each event is stored, dropped or quarantined as the rules of one version say",
    answers: { error: "some" },
  },
  {
    scenario: "nats-killed",
    load: "rules",
    shows: "the rules change while nats-server is killed, and every event has one end",
    server: "oldest",
  },
  {
    scenario: "gateway-terminated",
    shows: "a gateway that is stopped answers the requests in flight",
    answers: { "error ECONNREFUSED": "some" },
  },
  {
    scenario: "worker-killed",
    shows: "a worker that is killed has stored every acknowledged event",
    answers: { error: "some" },
  },
  {
    scenario: "embedded-nats-killed",
    shows: "the gateway restarts a killed embedded nats-server and stores waiting requests",
    answers: { "200": "over 100" },
  },
  {
    scenario: "clients-abort",
    shows: "clients that disconnect at any stage of a request do not affect other clients",
    answers: { "503": "none", error: "none" },
    events: { storedThoughUnknown: "some" },
  },
  {
    scenario: "clock-steps",
    shows: "a wall clock that steps an hour back and forth affects no request",
    answers: { "503": "none", error: "none" },
  },
  {
    scenario: "acks-lost",
    shows: "no frame that is sent again is stored twice",
    events: { duplicated: "none" },
  },
  {
    scenario: "connection-cut",
    shows: "acknowledged events are stored once although the connection is reset",
    answers: { "503 unavailable": "some", "503 timeout": "none" },
  },
  {
    scenario: "connection-stalled",
    shows: "requests wait for a network that is silent for a while",
    answers: { "503": "none" },
    events: { duplicated: "none" },
  },
];

/** nats-server 2.10 may leave a frame in flight for as long as the gateway holds it. */
const oldClusterMsMax = 180_000 + frameMsMax;

export const clusterRuns: readonly ShortRun[] = [
  {
    scenario: "cluster-leader-killed",
    shows: "every acknowledged event is stored once despite the loss of a leader",
    timeoutMs: 60_000,
    answers: { "200": "over 100" },
  },
  {
    scenario: "cluster-leader-steps-down",
    load: "projects",
    shows: "no request is rejected while leaders change in the middle of atomic batches",
    timeoutMs: 60_000,
    answers: { "503": "none" },
    events: { duplicated: "none" },
  },
  {
    scenario: "cluster-pages-lost-at-once",
    shows: "a power cut of the whole cluster loses no acknowledged event",
    timeoutMs: 180_000,
  },
  // If nats-server loses acknowledged events, as before 2.12 in this scenario, the gateway must
  // report the loss.
  {
    scenario: "cluster-disk-lost-while-lagging",
    shows: "the gateway reports lost events that only one node had",
    server: "oldest",
    timeoutMs: oldClusterMsMax,
  },
  {
    scenario: "cluster-quorum-lost-far-away",
    shows: "the deadline of one request removes no other request's events",
    timeoutMs: 180_000,
    answers: { "200": "over 100", "503": "some" },
    events: { lost: "none" },
  },
  {
    scenario: "cluster-random-walk",
    shows: "several failures at a time lose no event",
    timeoutMs: 180_000,
  },
  {
    scenario: "cluster-leader-cut-off",
    shows: "events are acknowledged through other nodes while the leader is cut off",
    network: "proxies",
    timeoutMs: 180_000,
  },
  // The oldest nats-server reports a frame as already stored although it has replicated the frame
  // to no node.
  {
    scenario: "cluster-leader-cut-with-gateway",
    shows: "an answer of a leader without a quorum acknowledges no event",
    server: "oldest",
    network: "namespaces where they can be made",
    timeoutMs: oldClusterMsMax,
  },
  {
    scenario: "cluster-leaderless-spell",
    shows: "known keys get 503 while no stream has a leader",
    timeoutMs: 180_000,
    answers: { "503": "some" },
  },
];

/** These scenarios take too long, or another test covers them. */
export const onlyInFullForm: readonly string[] = [
  "cluster-block-damaged",
  "cluster-follower-killed",
  "cluster-followers-frozen-leader-killed",
  "cluster-killed-while-growing",
  "cluster-leader-frozen",
  "cluster-leader-paused",
  "cluster-pages-lost-while-growing",
  "cluster-power-cut-while-lagging",
  "cluster-quorum-lost",
  "cluster-rolling-restart",
  "cluster-trouble-without-end",
  "connection-slow",
  "embedded-disk-full",
  "everything-killed",
  "gateway-terminated-while-frozen",
  "project-with-little-beside-flood",
];

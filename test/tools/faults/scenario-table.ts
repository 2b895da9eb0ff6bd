// The fault scenarios in their short form: what each run shows, on what it runs, and what must hold
// of its answers, beside the promises that every run is held to (short-run.ts). One nats-server,
// nodes of a cluster, and the network are three files, which run side by side and take about as
// long as each other. `npm run faults` runs the same scenarios longer and on more nats-servers.

/** How often something was: never, at least once, or more than 100 times. */
export type Count = "none" | "some" | "over 100";

export interface ShortRun {
  /** The name that it has in test/faults. */
  readonly scenario: string;
  readonly shows: string;
  /** Default: single events, batches and large requests together. */
  readonly load?: "projects";
  /** Default: the newest nats-server that is on this host. */
  readonly server?: "oldest";
  /**
   * What cuts nodes off. Proxies can be had everywhere; namespaces, where they can be made, cut as
   * a network does. Default: proxies.
   */
  readonly network?: "proxies" | "namespaces where they can be made";
  /** Default: as for any test. */
  readonly timeoutMs?: number;
  /** How many requests had an answer that begins so, or one of several. */
  readonly answers?: Readonly<Record<string, Count>>;
  /** How many events the streams hold so. */
  readonly events?: Readonly<
    Partial<Record<"lost" | "duplicated" | "unknown" | "storedThoughUnknown", Count>>
  >;
  /** How much the scenario has to say. */
  readonly notes?: number;
}

export const singleRuns: readonly ShortRun[] = [
  {
    scenario: "nats-killed",
    shows: "what was acknowledged before, during and after a kill of nats-server is stored",
    answers: { "200": "over 100", "4": "some" },
  },
  {
    scenario: "nats-killed-again-and-again",
    shows:
      "what was in flight through several lives of the oldest nats-server is stored once or not acknowledged",
    server: "oldest",
    timeoutMs: 180_000,
    answers: { "503 unavailable": "some" },
  },
  {
    scenario: "nats-killed-again-and-again",
    load: "projects",
    shows: "the same of frames of many projects, which leave in atomic batches",
    answers: { "503 unavailable": "some" },
  },
  {
    scenario: "shared-frames-nats-killed",
    shows:
      "shared frames, partitions and workers keep the promise through two deaths of nats-server",
    answers: { "200": "over 100" },
  },
  {
    scenario: "nats-frozen-briefly",
    shows: "requests wait out a nats-server that stands still for less than their deadline",
    answers: { error: "none" },
    events: { unknown: "none" },
  },
  {
    scenario: "nats-frozen-long",
    shows:
      "requests that outlast their deadline get 503 timeout, and what is stored of them is never told as lost",
    answers: { "503 timeout": "some" },
  },
  {
    scenario: "stream-full",
    shows: "full streams answer 503 store_full, and take events again once emptied",
    answers: { "503 store_full": "some" },
  },
  {
    scenario: "project-floods-in-bursts",
    shows:
      "a flood of well-compressed bursts ends at its project's share, and others notice nothing",
    timeoutMs: 120_000,
    answers: { "503": "none" },
  },
  {
    scenario: "project-has-much-beside-flood",
    shows: "a project that has most of a stream goes on beside a flood of another",
    timeoutMs: 120_000,
    answers: { "503": "none" },
  },
  {
    scenario: "server-limit",
    shows: "a server without room for any stream refuses, and takes events again once it has room",
    answers: { "503 store_full": "some" },
  },
  {
    scenario: "store-not-restored",
    shows:
      "without its streams the store takes nothing, and with them it has all that was acknowledged",
    answers: { "503": "some" },
  },
  {
    scenario: "disk-full",
    shows:
      "a disk that fills in the middle of writes costs refusals, and nothing that was acknowledged",
    answers: { "503": "some" },
    notes: 1,
  },
  {
    scenario: "gateway-killed",
    shows: "a gateway that is killed twice under load had stored all it acknowledged",
    answers: { error: "some" },
  },
  {
    scenario: "gateway-terminated",
    shows: "a gateway that is told to stop answers what it took, and loses nothing",
    answers: { "error ECONNREFUSED": "some" },
  },
  {
    scenario: "gateway-terminated-while-frozen",
    shows:
      "a gateway that is told to stop waits for the acknowledgements of what it took, and ends with 0",
    answers: { "200": "over 100" },
  },
  {
    scenario: "everything-killed",
    shows: "what was acknowledged before gateway and nats-server died together is stored",
    answers: { error: "some" },
  },
  {
    scenario: "worker-killed",
    shows: "a worker that is killed had stored what it acknowledged, and another takes its place",
    answers: { error: "some" },
  },
  {
    scenario: "embedded-nats-killed",
    shows: "the gateway restarts a killed embedded nats-server and stores what waited",
    answers: { "200": "over 100" },
  },
  {
    scenario: "embedded-disk-full",
    shows: "the gateway restarts an embedded nats-server once its full disk has room",
    answers: { "200": "over 100" },
    notes: 1,
  },
  {
    scenario: "clients-abort",
    shows: "clients that go at every stage of a request cost the others nothing",
    answers: { "503": "none", error: "none" },
    events: { storedThoughUnknown: "some" },
  },
  {
    scenario: "clock-steps",
    shows: "a wall clock that steps an hour back and forth costs nobody anything",
    answers: { "503": "none", error: "none" },
  },
];

export const clusterRuns: readonly ShortRun[] = [
  {
    scenario: "cluster-leader-killed",
    shows:
      "what was acknowledged before, during and after the loss of a stream's leader is stored once",
    timeoutMs: 60_000,
    answers: { "200": "over 100" },
  },
  {
    scenario: "cluster-leader-steps-down",
    shows: "no request is refused while leaders change",
    timeoutMs: 60_000,
    answers: { "503": "none" },
    events: { duplicated: "none" },
  },
  {
    scenario: "cluster-leader-steps-down",
    load: "projects",
    shows: "no request is refused while leaders change in the middle of atomic batches",
    timeoutMs: 60_000,
    answers: { "503": "none" },
    events: { duplicated: "none" },
  },
  {
    scenario: "cluster-killed-while-growing",
    shows: "a kill of all nodes while streams get replicas takes nothing that was acknowledged",
    timeoutMs: 180_000,
  },
  {
    scenario: "cluster-pages-lost-at-once",
    shows: "a power cut of the whole cluster takes nothing that was acknowledged",
    timeoutMs: 180_000,
  },
  // Where nats-server loses what it has acknowledged, which before 2.12 it does here, the gateway
  // must have said that its store went back. Newer ones wait for the last node that has everything,
  // which `npm run faults` shows.
  {
    scenario: "cluster-disk-lost-while-lagging",
    shows: "the oldest nats-server loses what only that node had, and the gateway tells",
    server: "oldest",
    timeoutMs: 180_000,
  },
  {
    scenario: "cluster-quorum-lost-far-away",
    shows: "the deadline of one request takes no line from another in the same frame",
    timeoutMs: 180_000,
    answers: { "200": "over 100", "503": "some" },
    events: { lost: "none" },
  },
  {
    scenario: "cluster-random-walk",
    shows:
      "several troubles at a time lose nothing, turn no valid key away, and leave all replicas equal",
    timeoutMs: 180_000,
  },
];

export const networkRuns: readonly ShortRun[] = [
  {
    scenario: "acks-lost",
    shows:
      "frames are sent again for want of an acknowledgement, and not one of them is stored twice",
    events: { duplicated: "none" },
  },
  {
    scenario: "connection-cut",
    shows: "what was acknowledged is stored once though its connection was reset",
    answers: { "503 unavailable": "some", "503 timeout": "none" },
  },
  {
    scenario: "connection-stalled",
    shows: "requests wait for a network that is silent for a while",
    answers: { "503": "none" },
    events: { duplicated: "none" },
  },
  {
    scenario: "cluster-leader-cut-off",
    shows:
      "while the leader is cut off from the other nodes, events are acknowledged through those",
    network: "proxies",
    timeoutMs: 180_000,
  },
  // On the oldest nats-server: it says of a frame that it has sent on to nobody that it is stored
  // already.
  {
    scenario: "cluster-leader-cut-with-gateway",
    shows: "what a leader without a quorum says of a frame acknowledges nothing",
    server: "oldest",
    network: "namespaces where they can be made",
    timeoutMs: 180_000,
  },
  // On the oldest nats-server, which says of a frame that waits for the followers that it is stored
  // already.
  {
    scenario: "cluster-followers-frozen-leader-killed",
    shows: "what only the leader has is not acknowledged",
    server: "oldest",
    timeoutMs: 180_000,
  },
  {
    scenario: "cluster-leaderless-spell",
    shows: "while no stream has a leader, known keys get 503 and unknown ones no 200",
    timeoutMs: 180_000,
    answers: { "503": "some" },
  },
];

/** What takes too long for every run, or shows what the others show: `npm run faults` has it. */
export const onlyInFullForm: readonly string[] = [
  "cluster-block-damaged",
  "cluster-follower-killed",
  "cluster-leader-frozen",
  "cluster-leader-paused",
  "cluster-pages-lost-while-growing",
  "cluster-power-cut-while-lagging",
  "cluster-quorum-lost",
  "cluster-rolling-restart",
  "cluster-trouble-without-end",
  "connection-slow",
  "project-with-little-beside-flood",
];

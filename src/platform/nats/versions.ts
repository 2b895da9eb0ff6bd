// Bugs of nats-server versions that break the promise of a 200. The numbers in brackets are pull
// requests and issues of nats-io/nats-server.

import type { Log } from "../base/log.ts";
import type { NatsLink } from "./link.ts";

type Version = readonly [number, number, number];

interface VersionFault {
  /** The rest of a sentence that begins with the version. */
  readonly bites: string;
  /** Whether the version loses acknowledged messages sooner or later. */
  readonly isGrave: boolean;
}

interface Row extends VersionFault {
  readonly from: Version;
  /** The first version with the fix. */
  readonly until: Version;
  readonly inClusterOnly: boolean;
  /**
   * The log at the start omits the bug on a single node: it needs a power failure at a particular
   * moment.
   */
  readonly isQuietOnOneNode?: true;
}

/** On a single node 2.10.23 is enough, but may lose messages at a power failure. */
export const clusterVersionsWanted = "2.14.7, or 2.15 and newer";
const beginning: Version = [0, 0, 0];

const rows: readonly Row[] = [
  {
    from: [2, 10, 20],
    until: [2, 10, 23],
    inClusterOnly: false,
    isGrave: false,
    bites: "can lose a stream when it is killed (6888)",
  },
  {
    from: [2, 10, 14],
    until: [2, 11, 0],
    inClusterOnly: true,
    isGrave: true,
    bites:
      "can report a message as a duplicate, with sequence 0, although it is not stored (5827, fixed in 2.11)",
  },
  {
    from: beginning,
    until: [2, 12, 0],
    inClusterOnly: true,
    isGrave: true,
    bites:
      "loses acknowledged messages when one node's disk is lost while another one lags (7038, fixed in 2.12)",
  },
  {
    from: beginning,
    until: [2, 14, 0],
    inClusterOnly: true,
    isGrave: false,
    bites:
      "can lose acknowledged messages when nodes are killed or partitioned (Jepsen; 7580, 7620, fixed in 2.14)",
  },
  {
    from: beginning,
    until: [2, 14, 7],
    inClusterOnly: true,
    isGrave: false,
    bites: "lets replicas diverge when a stream is full (8265, fixed in 2.14.7)",
  },
  {
    from: beginning,
    until: [2, 14, 7],
    inClusterOnly: false,
    isQuietOnOneNode: true,
    isGrave: false,
    bites:
      "compacts without the fsync that `sync_interval: always` requires, so that a power failure right after it can lose acknowledged messages (8475, 8456, fixed in 2.14.7)",
  },
];

/** Returns the known bugs of a version, such as `2.10.27-RC.1`. */
export function versionFaults(version: string, isClustered: boolean): readonly VersionFault[] {
  return rowsOf(version, isClustered);
}

function rowsOf(version: string, isClustered: boolean): readonly Row[] {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  const asked: Version = [major, minor, patch];
  return rows.filter(
    ({ from, until, inClusterOnly }) =>
      (isClustered || !inClusterOnly) && compare(asked, from) >= 0 && compare(asked, until) < 0,
  );
}

/** Logs the known bugs, again if a reconnect leads to another version. */
export function logVersionFaults(
  link: Pick<NatsLink, "connection" | "onChange">,
  replicas: number,
  log: Pick<Log, "warn">,
): void {
  const logged = new Set<string>();
  const tell = (): void => {
    const { version = "", cluster } = link.connection.info ?? {};
    if (version === "" || logged.has(version)) return;
    logged.add(version);
    const isClustered = replicas > 1 || cluster !== undefined;
    const said = rowsOf(version, isClustered).filter(
      ({ isQuietOnOneNode }) => isClustered || !isQuietOnOneNode,
    );
    const faults = said.map(({ bites }) => bites);
    if (faults.length === 0) return;
    const wanted = isClustered ? { wanted: clusterVersionsWanted } : {};
    log.warn(
      { version, faults, ...wanted },
      "nats-server has known bugs that can lose acknowledged events or let replicas diverge (see `faults`): upgrade it",
    );
  };
  tell();
  link.onChange((connected) => {
    if (connected) tell();
  });
}

function compare(left: Version, right: Version): number {
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2];
}

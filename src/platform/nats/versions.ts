// The faults of nats-server's versions that concern the promise of a 200, and which version ended
// each of them. One table, for the gateway's log at its start and for doctor. The numbers in
// brackets are pull requests and issues of the project nats-io/nats-server.

import type { Log } from "../base/log.ts";
import type { NatsLink } from "./link.ts";

type Version = readonly [number, number, number];

interface VersionFault {
  /** What goes wrong, worded as the rest of a sentence that begins with the version. */
  readonly bites: string;
  /** The version has been seen to lose what was acknowledged, or sooner or later does lose it. */
  readonly isGrave: boolean;
}

interface Row extends VersionFault {
  readonly from: Version;
  /** The first version without the fault. */
  readonly until: Version;
  /** A single node does not have the fault. */
  readonly inClusterOnly: boolean;
  /**
   * On a single node the fault takes a power cut at one moment. So doctor says it there, and the
   * log at each start does not.
   */
  readonly isQuietOnOneNode?: true;
}

/**
 * The versions to run in a cluster. A single node does with 2.10.23, but for what a power cut may
 * take.
 */
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
      "calls a message that it has not stored a duplicate, with sequence 0 (5827, fixed in 2.11)",
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
      "can lose acknowledged messages when nodes are killed or cut off (Jepsen; 7580, 7620, fixed in 2.14)",
  },
  {
    from: beginning,
    until: [2, 14, 7],
    inClusterOnly: true,
    isGrave: false,
    bites: "lets replicas part at a full stream (8265, fixed in 2.14.7)",
  },
  {
    from: beginning,
    until: [2, 14, 7],
    inClusterOnly: false,
    isQuietOnOneNode: true,
    isGrave: false,
    bites:
      "compacts without the fsync that `sync_interval: always` asks for, so that a power cut right after it may cost acknowledged messages (8475, 8456, fixed in 2.14.7)",
  },
];

/**
 * The known faults of `version`, which is written as `2.10.27` or `2.10.27-RC.1`. Empty where
 * nothing is known against it.
 */
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

/**
 * Says in the log which faults of the server's version are known, and says it again when a
 * reconnect leads to another version.
 */
export function logVersionFaults(
  link: Pick<NatsLink, "connection" | "onChange">,
  replicas: number,
  log: Pick<Log, "warn">,
): void {
  const told = new Set<string>();
  const tell = (): void => {
    const { version = "", cluster } = link.connection.info ?? {};
    if (version === "" || told.has(version)) return;
    told.add(version);
    const isClustered = replicas > 1 || cluster !== undefined;
    const said = rowsOf(version, isClustered).filter(
      ({ isQuietOnOneNode }) => isClustered || !isQuietOnOneNode,
    );
    const faults = said.map(({ bites }) => bites);
    if (faults.length === 0) return;
    const wanted = isClustered ? { wanted: clusterVersionsWanted } : {};
    log.warn(
      { version, faults, ...wanted },
      "this version of nats-server can break what a 200 promises: upgrade it",
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

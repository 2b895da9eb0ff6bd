// Checks whether account and server have enough storage for the streams of the settings. The
// storage of existing streams is already reserved.

import type { AccountLimits, JetStreamAccountStats, StreamInfo } from "@nats-io/jetstream";
import type { WantedConfig } from "../../gateway/streams/desired.ts";
import { checkOf, type Finding, shownBytes } from "./finding.ts";
import type { JetStreamFacts } from "./nats-checks.ts";

/** The storage of one server. */
export interface ServerRoom {
  readonly storeBytesMax: number;
  readonly reservedBytes: number;
  readonly clusterSize: number;
}

interface RoomQuestion {
  readonly facts: JetStreamFacts;
  readonly wanted: readonly WantedConfig[];
  /**
   * The streams of the buckets that the gateway creates, with their reserved bytes or 0 for no
   * limit.
   */
  readonly buckets: ReadonlyMap<string, number>;
  readonly server: ServerRoom | undefined;
  /** The domain of the hub at a leaf node, whose bucket must be a mirror. */
  readonly hubDomain?: string | undefined;
}

/** The minimum of PENSTOCK_STREAM_BYTES_MAX. */
const streamBytesLeast = 1_048_576;
const enable =
  "add a `jetstream { store_dir: … }` block to nats-server's configuration, and enable it for the account";

export function checkJetStreamFault(fault: string, isOnServer: boolean): Finding {
  const check = checkOf("jetstream");
  if (!isOnServer) return check.fail("the server runs without JetStream", enable);
  if (/not enabled/i.test(fault))
    return check.fail(`the account has no JetStream: ${fault}`, enable);
  return check.fail(
    `does not respond: ${fault}`,
    "check nats-server's log: a cluster needs a leader (most of its nodes up), and the user needs the permission to publish to $JS.API.>",
  );
}

export function checkRoom(question: RoomQuestion): Finding[] {
  const { facts, wanted, buckets, server, hubDomain } = question;
  const check = checkOf("jetstream");
  const replicas = wanted[0]?.num_replicas ?? 1;
  const tier = tierOf(facts.account, replicas);
  if (tier === undefined) {
    return [
      check.fail(
        `the account has no storage for R${replicas} streams`,
        `add a tier R${replicas} to it, or set PENSTOCK_REPLICAS`,
      ),
    ];
  }
  const missing = [...wanted.map(({ name }) => name), ...buckets.keys()].filter(
    (name) => !facts.streams.has(name),
  );
  const faults = limitFaults(tier.limits, {
    wanted,
    missing,
    buckets,
    hubDomain,
    streams: facts.account.streams,
  });
  if (faults.length > 0) return faults;

  const added = addedBytes(question, tier.isTiered);
  const size = `${wanted.length} streams of ${shownBytes(wanted[0]?.max_bytes ?? 0)}${replicas > 1 ? ` × ${replicas}` : ""}`;
  if (added.streams + added.buckets === 0) return [check.ok(`enabled; ${size} are reserved`)];
  const asks = `${size}: ${shownBytes(added.streams + added.buckets)} must still be reserved`;
  const { max_storage: accountMax } = tier.limits;
  const account: Room = {
    whose: "the account",
    fix: "raise the account's max_file",
    bytesMax: accountMax < 0 ? Number.POSITIVE_INFINITY : accountMax,
    usedBytes: tier.usedBytes,
    nodes: 1,
  };
  const rooms = [account, ...serverRoomOf(server, tier.isTiered ? replicas : 1)];
  const short = rooms.find((room) => added.streams + added.buckets > freeOf(room));
  if (short !== undefined)
    return [tooLittle(question, { asks, added, room: short, isTiered: tier.isTiered })];
  const tightest = rooms.reduce((least, room) => (freeOf(room) < freeOf(least) ? room : least));
  if (freeOf(tightest) < Number.POSITIVE_INFINITY) {
    return [check.ok(`enabled; ${asks}, ${tightest.whose} has ${shownBytes(freeOf(tightest))}`)];
  }
  const found = `enabled; ${asks}, but the server's max_file_store is not visible from here`;
  return [
    check.warn(
      found,
      "give nats-server's monitoring port: `penstock doctor --monitor http://host:8222`",
    ),
  ];
}

interface Room {
  readonly whose: string;
  readonly fix: string;
  readonly bytesMax: number;
  readonly usedBytes: number;
  readonly nodes: number;
}

/**
 * In accounts with tiers the added bytes count each stream once, so the storage of all nodes is
 * divided by `copies`, the replicas. Elsewhere they count every replica, and `copies` is 1.
 */
function serverRoomOf(server: ServerRoom | undefined, copies: number): Room[] {
  if (server === undefined) return [];
  const fix = "raise max_file_store in nats-server's configuration";
  const nodes = Math.max(1, server.clusterSize) / copies;
  return [
    {
      whose: "the server",
      fix,
      bytesMax: server.storeBytesMax,
      usedBytes: server.reservedBytes,
      nodes,
    },
  ];
}

function freeOf({ bytesMax, usedBytes, nodes }: Room): number {
  return Math.max(0, bytesMax - usedBytes) * nodes;
}

interface Added {
  readonly streams: number;
  readonly buckets: number;
}

/** Returns the bytes that a start will reserve. In accounts without tiers every replica counts. */
function addedBytes({ facts, wanted, buckets }: RoomQuestion, isTiered: boolean): Added {
  const times = (replicas: number): number => (isTiered ? 1 : replicas);
  let ofStreams = 0;
  for (const { name, max_bytes: bytesMax, num_replicas: replicas } of wanted) {
    ofStreams += Math.max(0, bytesMax * times(replicas) - promised(facts.streams.get(name), times));
  }
  let ofBuckets = 0;
  for (const [name, bytes] of buckets) {
    if (!facts.streams.has(name)) ofBuckets += bytes * times(wanted[0]?.num_replicas ?? 1);
  }
  return { streams: ofStreams, buckets: ofBuckets };
}

function promised(info: StreamInfo | undefined, times: (replicas: number) => number): number {
  if (info === undefined) return 0;
  const { max_bytes: bytesMax, num_replicas: replicas } = info.config;
  return bytesMax > 0 ? bytesMax * times(replicas) : Number.POSITIVE_INFINITY;
}

interface Shortage {
  readonly asks: string;
  readonly added: Added;
  readonly room: Room;
  readonly isTiered: boolean;
}

/**
 * A failure if the storage is too small for the streams, a warning if only for the usage record,
 * without which a gateway starts.
 */
function tooLittle(
  { wanted, facts }: RoomQuestion,
  { asks, added, room, isTiered }: Shortage,
): Finding {
  const check = checkOf("jetstream");
  const { whose, bytesMax } = room;
  const free = freeOf(room);
  const left = Math.max(0, bytesMax - room.usedBytes);
  const found = `${asks}, but only ${shownBytes(left)} of ${whose}'s ${shownBytes(bytesMax)} are left`;
  const copies = wanted.reduce(
    (sum, { num_replicas: replicas }) => sum + (isTiered ? 1 : replicas),
    0,
  );
  const fitting = Math.floor((free - added.buckets) / copies);
  // A smaller setting does not shrink existing streams.
  const isFirst =
    wanted.every(({ name }) => !facts.streams.has(name)) && fitting >= streamBytesLeast;
  const lower = isFirst
    ? `PENSTOCK_STREAM_BYTES_MAX=${fitting} would fit`
    : "lower PENSTOCK_STREAM_BYTES_MAX";
  if (added.streams > free) return check.fail(found, `${lower}; or ${room.fix}`);
  return check.warn(`${found}: no storage for the usage record`, `${lower}; or ${room.fix}`);
}

interface Tier {
  readonly limits: AccountLimits;
  readonly usedBytes: number;
  readonly isTiered: boolean;
}

function tierOf(account: JetStreamAccountStats, replicas: number): Tier | undefined {
  const isTiered = Object.keys(account.tiers ?? {}).length > 0;
  const usage = isTiered ? account.tiers?.[`R${replicas}`] : account;
  if (usage === undefined) return undefined;
  const { limits, reserved_storage: reserved = 0, storage } = usage;
  return { limits, usedBytes: Math.max(reserved, storage), isTiered };
}

interface LimitQuestion {
  readonly wanted: readonly WantedConfig[];
  readonly missing: readonly string[];
  readonly buckets: ReadonlyMap<string, number>;
  readonly hubDomain: string | undefined;
  readonly streams: number;
}

function limitFaults(
  limits: AccountLimits,
  { wanted, missing, buckets, hubDomain, streams }: LimitQuestion,
): Finding[] {
  const check = checkOf("jetstream");
  const faults: Finding[] = [];
  if (missing.length === 0) return faults;
  if (limits.max_streams >= 0 && streams + missing.length > limits.max_streams) {
    const found = `the account has ${streams} of at most ${limits.max_streams} streams: ${missing.length} more are needed`;
    faults.push(check.fail(found, "raise the account's max_streams, or lower PENSTOCK_PARTITIONS"));
  }
  const largest = limits.storage_max_stream_bytes;
  const asked = Math.max(...wanted.map(({ max_bytes: bytes }) => bytes));
  if (largest > 0 && asked > largest) {
    const found = `a stream of ${shownBytes(asked)} exceeds the account's limit of ${shownBytes(largest)} per stream`;
    faults.push(
      check.fail(
        found,
        `PENSTOCK_STREAM_BYTES_MAX=${largest}, or raise the account's disk_max_stream_bytes`,
      ),
    );
  }
  const unlimited = missing.filter((name) => buckets.get(name) === 0);
  if (limits.max_bytes_required && unlimited.length > 0) {
    const made = unlimited.map((name) => {
      const bucket = name.replace(/^KV_/, "");
      const mirror =
        hubDomain === undefined ? "" : ` --mirror=${bucket} --mirror-domain=${hubDomain}`;
      return `\`nats kv add ${bucket} --max-bucket-size=64MB --history=1${mirror}\``;
    });
    faults.push(
      check.fail(
        "the account requires a byte limit for each stream, and the registry has none",
        made.join(", "),
      ),
    );
  }
  return faults;
}

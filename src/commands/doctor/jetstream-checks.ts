// Checks if the account and the server have enough storage for the streams of these settings.
// Existing streams have already reserved their storage.

import type { AccountLimits, StreamInfo } from "@nats-io/jetstream";
import type { WantedConfig } from "../../gateway/streams/desired.ts";
import { checkOf, type Finding, shownBytes } from "./finding.ts";
import type { JetStreamFacts } from "./nats-checks.ts";

export interface ServerRoom {
  readonly storeBytesMax: number;
  readonly reservedBytes: number;
  readonly clusterSize: number;
}

interface RoomQuestion {
  readonly facts: JetStreamFacts;
  readonly wanted: readonly WantedConfig[];
  /**
   * The other streams, without which a gateway starts: of its others and of rejected events. With
   * their reserved bytes, or 0 for no limit.
   */
  readonly others: ReadonlyMap<string, number>;
  readonly server: ServerRoom | undefined;
  readonly hubDomain?: string | undefined;
}

interface Room {
  readonly whose: string;
  readonly fix: string;
  readonly bytesMax: number;
  readonly usedBytes: number;
  readonly nodes: number;
}

const check = checkOf("jetstream");
const streamBytesLeast = 1_048_576;
const enable =
  "add a `jetstream { store_dir: … }` block to nats-server's configuration, and enable it for the account";

export function checkJetStreamFault(fault: string, isOnServer: boolean): Finding {
  if (!isOnServer) return check.fail("the server runs without JetStream", enable);
  if (/not enabled/i.test(fault))
    return check.fail(`the account has no JetStream: ${fault}`, enable);
  return check.fail(
    `does not respond: ${fault}`,
    "check the log of nats-server. A cluster needs a leader, and so most of its nodes; the user needs the permission to publish to $JS.API.>",
  );
}

export function checkRoom(question: RoomQuestion): Finding[] {
  const { facts, wanted, others, server } = question;
  const { account, streams } = facts;
  const replicas = wanted[0]?.num_replicas ?? 1;
  const isTiered = Object.keys(account.tiers ?? {}).length > 0;
  const usage = isTiered ? account.tiers?.[`R${replicas}`] : account;
  if (usage === undefined) {
    const fix = `add a tier R${replicas} to it, or set PENSTOCK_REPLICAS`;
    return [check.fail(`the account has no storage for R${replicas} streams`, fix)];
  }
  const faults = limitFaults(question, usage.limits);
  if (faults.length > 0) return faults;

  // If the account has tiers, each stream counts once. If it has no tiers, each replica counts.
  const copiesOf = (count: number): number => (isTiered ? 1 : count);
  const copies = copiesOf(replicas);
  const reservedFor = (info: StreamInfo | undefined): number => {
    if (info === undefined) return 0;
    const { max_bytes: bytes, num_replicas: count } = info.config;
    return bytes > 0 ? bytes * copiesOf(count) : Number.POSITIVE_INFINITY;
  };
  const sum = (all: readonly number[]): number => all.reduce((total, one) => total + one, 0);
  const streamBytes = sum(
    wanted.map(({ name, max_bytes: bytes }) =>
      Math.max(0, bytes * copies - reservedFor(streams.get(name))),
    ),
  );
  const otherBytes = sum(
    [...others].map(([name, bytes]) => (streams.has(name) ? 0 : bytes * copies)),
  );
  const size = `${wanted.length} streams of ${shownBytes(wanted[0]?.max_bytes ?? 0)}${replicas > 1 ? ` × ${replicas}` : ""}`;
  const added = streamBytes + otherBytes;
  if (added === 0) return [check.ok(`enabled; ${size} are reserved`)];
  const asks = `${size}: ${shownBytes(added)} must still be reserved`;

  const { limits, reserved_storage: reserved = 0, storage } = usage;
  const rooms: Room[] = [
    {
      whose: "the account",
      fix: "raise the account's max_file",
      nodes: 1,
      bytesMax: limits.max_storage < 0 ? Number.POSITIVE_INFINITY : limits.max_storage,
      usedBytes: Math.max(reserved, storage),
    },
  ];
  if (server !== undefined)
    rooms.push({
      whose: "the server",
      fix: "raise max_file_store in nats-server's configuration",
      bytesMax: server.storeBytesMax,
      usedBytes: server.reservedBytes,
      nodes: (Math.max(1, server.clusterSize) * copies) / replicas,
    });
  const freeOf = ({ bytesMax, usedBytes, nodes }: Room): number =>
    Math.max(0, bytesMax - usedBytes) * nodes;
  const tightest = rooms.reduce((least, room) => (freeOf(room) < freeOf(least) ? room : least));
  const { whose, fix, bytesMax, usedBytes } = tightest;
  const free = freeOf(tightest);
  if (free === Number.POSITIVE_INFINITY)
    return [
      check.warn(
        `enabled; ${asks}, but the server's max_file_store is not visible from here`,
        "give nats-server's monitoring port: `penstock doctor --monitor http://host:8222`",
      ),
    ];
  if (added <= free) return [check.ok(`enabled; ${asks}, ${whose} has ${shownBytes(free)}`)];

  const found = `${asks}, but only ${shownBytes(Math.max(0, bytesMax - usedBytes))} of ${whose}'s ${shownBytes(bytesMax)} are left`;
  const fitting = Math.floor((free - otherBytes) / (wanted.length * copies));
  // A smaller setting does not shrink existing streams.
  const isFirst = wanted.every(({ name }) => !streams.has(name)) && fitting >= streamBytesLeast;
  const lower = isFirst
    ? `PENSTOCK_STREAM_BYTES_MAX=${fitting} would fit; or ${fix}`
    : `lower PENSTOCK_STREAM_BYTES_MAX; or ${fix}`;
  // The other streams are a warning, because a gateway starts without them.
  return streamBytes > free
    ? [check.fail(found, lower)]
    : [check.warn(`${found}: no storage for the usage record or for rejected events`, lower)];
}

function limitFaults(
  { facts, wanted, others, hubDomain }: RoomQuestion,
  limits: AccountLimits,
): Finding[] {
  const faults: Finding[] = [];
  const names = [...wanted.map(({ name }) => name), ...others.keys()];
  const missing = names.filter((name) => !facts.streams.has(name));
  if (missing.length === 0) return faults;
  const { streams } = facts.account;
  if (limits.max_streams >= 0 && streams + missing.length > limits.max_streams) {
    const found = `the account has ${streams} of at most ${limits.max_streams} streams: ${missing.length} more are needed`;
    faults.push(check.fail(found, "raise the account's max_streams, or lower PENSTOCK_PARTITIONS"));
  }
  const largest = limits.storage_max_stream_bytes;
  const asked = Math.max(...wanted.map(({ max_bytes: bytes }) => bytes));
  if (largest > 0 && asked > largest) {
    const found = `a stream of ${shownBytes(asked)} exceeds the account's limit of ${shownBytes(largest)} per stream`;
    const fix = `PENSTOCK_STREAM_BYTES_MAX=${largest}, or raise the account's disk_max_stream_bytes`;
    faults.push(check.fail(found, fix));
  }
  const unlimited = missing.filter((name) => others.get(name) === 0);
  if (limits.max_bytes_required && unlimited.length > 0) {
    const commands = unlimited.map((name) => {
      const bucket = name.replace(/^KV_/, "");
      const mirror =
        hubDomain === undefined ? "" : ` --mirror=${bucket} --mirror-domain=${hubDomain}`;
      return `\`nats kv add ${bucket} --max-bucket-size=64MB --history=1${mirror}\``;
    });
    const found = "the account requires a byte limit for each stream, and the registry has none";
    faults.push(check.fail(found, commands.join(", ")));
  }
  return faults;
}

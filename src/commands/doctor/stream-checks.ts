// Compares the streams with the settings by the rules in gateway/streams/desired.ts. Also checks
// their replicas and how full they are.

import { DiscardPolicy, type StreamInfo } from "@nats-io/jetstream";
import {
  atomicSetting,
  brokenPromises,
  changedLimits,
  keptLimits,
  type WantedConfig,
} from "../../gateway/streams/desired.ts";
import type { OwnLimits } from "../../gateway/streams/own-limits.ts";
import { isRestoring } from "../../platform/nats/names.ts";
import { checkOf, type Finding, shownBytes, shownList } from "./finding.ts";

const nanosPerSecond = 1e9;
const check = checkOf("streams");
const replicaCheck = checkOf("replicas");

interface StreamQuestion {
  readonly wanted: readonly WantedConfig[];
  readonly streams: ReadonlyMap<string, StreamInfo>;
  /** The limits that `penstock stream set` has set. */
  readonly own: ReadonlyMap<string, OwnLimits>;
  /** The largest message that a stream must accept. */
  readonly messageBytes: number;
  readonly sinkFileSeconds: number;
  readonly atomicBatches: boolean;
  readonly version: string;
}

interface Pair {
  readonly wanted: WantedConfig;
  readonly info: StreamInfo;
}

function pairsOf({ wanted, streams }: StreamQuestion): Pair[] {
  return wanted.flatMap((config) => {
    const info = streams.get(config.name);
    return info === undefined ? [] : [{ wanted: config, info }];
  });
}

export function checkStreams(question: StreamQuestion): Finding[] {
  const { wanted, messageBytes, sinkFileSeconds } = question;
  const pairs = pairsOf(question);
  if (pairs.length === 0)
    return [
      check.ok(
        `none of the ${wanted.length} streams exists yet: the gateway creates them at its start`,
      ),
    ];
  const findings: Finding[] = [];
  const warn = (found: string, fix: string): void => void findings.push(check.warn(found, fix));
  const missing = wanted.filter(({ name }) => !question.streams.has(name)).map(({ name }) => name);
  if (missing.length > 0)
    warn(
      `${pairs.length} of ${wanted.length} exist; missing: ${shownList(missing)}`,
      "start or restart the gateway, which creates them",
    );
  for (const { wanted: config, info } of pairs) {
    const { name } = config;
    const broken = brokenPromises(config, info.config, messageBytes);
    if (broken.length > 0 && isOfRejected(config))
      warn(
        `${name} cannot be used, so rejected events are lost: ${broken.join("; ")}`,
        fixOf(config, info),
      );
    else if (broken.length > 0) {
      const found = `${name} cannot guarantee that acknowledged events stay stored: ${broken.join("; ")}`;
      findings.push(check.fail(found, fixOf(config, info)));
    }
    const own = question.own.get(name) ?? {};
    const changed = Object.keys(changedLimits(config, info.config, own));
    const restart = "restart the gateway with these settings, which";
    const smaller = changed.filter((limit) => !(limit in own));
    if (smaller.length > 0)
      warn(
        `${name} has smaller limits than the settings: ${smaller.join(", ")}`,
        `${restart} raises the limits`,
      );
    const undone = changed.filter((limit) => limit in own);
    if (undone.length > 0)
      warn(
        `${name} has other limits than \`penstock stream set\` has set: ${undone.join(", ")}`,
        `${restart} sets them again`,
      );
    const ageSeconds = info.config.max_age / nanosPerSecond;
    if (ageSeconds > 0 && ageSeconds < 2 * sinkFileSeconds)
      warn(
        `${name} retains events for ${ageSeconds} s, but \`penstock sink parquet\` may commit them only after ${sinkFileSeconds} s`,
        "set PENSTOCK_SINK_FILE_SECONDS to less than half of the retention time, or retain events longer",
      );
    const kept = keptLimits(config, info.config, own);
    if (kept.length > 0)
      warn(
        `${name} has larger limits than the settings, which the gateway does not lower: ${kept.join(", ")}`,
        `raise the settings, or lower the limits with \`penstock stream set ${name} --from-settings\``,
      );
  }
  findings.push(...withoutBatches(pairs, question));
  return findings.length > 0 ? findings : [check.ok(`${pairs.length}, as configured`)];
}

function isOfRejected({ discard }: WantedConfig): boolean {
  return discard === DiscardPolicy.Old;
}

function withoutBatches(pairs: readonly Pair[], settings: StreamQuestion): Finding[] {
  const names = pairs.flatMap(({ wanted, info }) => {
    // No frame is published to the streams of rejected events.
    if (isOfRejected(wanted)) return [];
    const lacking = atomicSetting(settings, info.config, settings.version);
    return Object.keys(lacking).length > 0 ? [wanted.name] : [];
  });
  if (names.length === 0) return [];
  return [
    check.warn(
      `allow_atomic is not set on ${shownList(names)}: small frames of different projects are stored one by one there`,
      "restart the gateway, which sets it if its NATS user may update streams; or set PENSTOCK_ATOMIC_BATCHES=false",
    ),
  ];
}

function fixOf(wanted: WantedConfig, { config }: StreamInfo): string {
  const { name, subjects } = wanted;
  if (isRestoring(config)) return "run `penstock stream restore` again with the same folder";
  const isForGood =
    config.storage !== wanted.storage || config.retention !== wanted.retention || config.sealed;
  if (isForGood) {
    return `this cannot be changed: read the events of the stream, then run \`nats stream rm ${name}\` (the gateway creates it again); or set another PENSTOCK_SUBJECT_PREFIX`;
  }
  const flags = `--discard=${wanted.discard} --max-msgs=-1 --max-msgs-per-subject=-1 --max-msg-size=-1 --ack`;
  return `\`nats stream edit ${name} --subjects='${subjects.join(",")}' ${flags}\``;
}

interface ReplicaQuestion extends StreamQuestion {
  readonly replicas: number;
  readonly cluster: string | undefined;
  readonly sizeMonitored: number | undefined;
  readonly sizeReported: number;
}

export function checkReplicas(question: ReplicaQuestion): Finding[] {
  const pairs = pairsOf(question);
  const fault = replicasFault(question, pairs);
  const findings = [...(fault === undefined ? [] : [fault]), ...pairs.flatMap(peerFaults)];
  if (findings.length > 0) return findings;
  const { replicas, cluster } = question;
  const size = nodesOf(question, pairs);
  const nodes = size > 0 ? `, of ${size} nodes` : "";
  return [replicaCheck.ok(cluster === undefined ? "1, one server" : `${replicas}${nodes}`)];
}

/**
 * Returns the number of nodes in the cluster. The cluster does not report nodes that are down, but
 * it has at least one node per replica.
 */
function nodesOf({ sizeMonitored, sizeReported }: ReplicaQuestion, pairs: readonly Pair[]): number {
  const replicas = pairs.map(({ info }) => info.config.num_replicas);
  return sizeMonitored ?? Math.max(sizeReported, ...replicas);
}

function replicasFault(question: ReplicaQuestion, pairs: readonly Pair[]): Finding | undefined {
  const { replicas, cluster, sizeMonitored } = question;
  const size = nodesOf(question, pairs);
  const setTo = (copies: number): string => `PENSTOCK_REPLICAS=${copies}`;
  if (cluster === undefined) {
    if (replicas > 1)
      return replicaCheck.fail(
        `${replicas} are set, but the server is not in a cluster`,
        `${setTo(1)}, or form a cluster of ${replicas}: deploy/nats/cluster.conf`,
      );
  } else if (sizeMonitored !== undefined && replicas > sizeMonitored)
    return replicaCheck.fail(
      `${replicas} are set, but the cluster has ${sizeMonitored} nodes`,
      `${setTo(sizeMonitored >= 3 ? 3 : 1)}, or add nodes`,
    );
  else if (replicas > size && size > 1)
    return replicaCheck.warn(
      `${replicas} are set, but only ${size} nodes of the cluster are up`,
      `start the nodes that are down, add nodes, or ${setTo(size >= 3 ? 3 : 1)}`,
    );
  if (replicas === 2 || replicas === 4)
    return replicaCheck.warn(
      `${replicas} replicas survive the loss of as many nodes as ${replicas - 1} replicas, but each write waits for one more node`,
      `${setTo(replicas === 2 ? 3 : 5)}, or ${replicas - 1}`,
    );
  if (cluster === undefined || replicas > 1 || size < 3) return undefined;
  const found = `one copy in a cluster of ${size}: the loss of a node loses its streams`;
  return replicaCheck.warn(found, setTo(3));
}

function peerFaults({ info: { config, cluster } }: Pair): Finding[] {
  if (cluster === undefined) return [];
  const findings: Finding[] = [];
  const peers = cluster.replicas ?? [];
  if ((cluster.leader ?? "") === "" && config.num_replicas > 1) {
    const fix = `start its nodes again: it needs ${Math.floor(config.num_replicas / 2) + 1} of ${config.num_replicas}`;
    const found = `${config.name} has no leader: nothing can be stored in it`;
    findings.push(replicaCheck.fail(found, fix));
  }
  const offline = peers.filter((peer) => peer.offline === true).map(({ name }) => name);
  if (offline.length > 0) {
    const fix =
      "start that nats-server again, or replace its node (`nats stream cluster peer-remove`)";
    findings.push(replicaCheck.warn(`${config.name}: ${shownList(offline)} offline`, fix));
  }
  const behind = peers.filter((peer) => peer.offline !== true && !peer.current);
  if (behind.length > 0) {
    const shown = behind.map(({ name, lag = 0 }) => (lag > 0 ? `${name} (${lag} messages)` : name));
    const fix =
      "if this persists, check the nats-server: it may be frozen or disconnected, or its disk may be too slow";
    findings.push(replicaCheck.warn(`${config.name}: ${shownList(shown)} not up to date`, fix));
  }
  return findings;
}

const nearlyFull = 0.8;
const full = 0.95;

export function checkFill(question: StreamQuestion): Finding[] {
  const fill = checkOf("fill");
  const findings: Finding[] = [];
  let fullest = 0;
  const pairs = pairsOf(question);
  for (const { info } of pairs) {
    const { name, max_bytes: bytesMax } = info.config;
    if (bytesMax <= 0) continue;
    const share = info.state.bytes / bytesMax;
    fullest = Math.max(fullest, share);
    if (share < nearlyFull) continue;
    const found = `${name} holds ${shownBytes(info.state.bytes)} of ${shownBytes(bytesMax)} (${percent(share)})`;
    const fix = `raise PENSTOCK_STREAM_BYTES_MAX (${bytesMax * 2} is twice as much) and restart the gateway, or lower PENSTOCK_${name.includes("_HISTORICAL_") ? "HISTORICAL" : "LIVE"}_AGE_MAX and the stream's max_age`;
    if (share < full) findings.push(fill.warn(found, fix));
    else findings.push(fill.fail(`${found}; a full stream rejects events (503 store_full)`, fix));
  }
  if (findings.length > 0) return findings;
  return [
    fill.ok(pairs.length === 0 ? "no streams yet" : `the fullest stream has ${percent(fullest)}`),
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

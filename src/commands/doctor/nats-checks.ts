// Checks what the server itself shows: whether it answers, its version, what it takes in one
// message, and its clock.

import { headerBytesMax } from "../../platform/nats/limits.ts";
import { clusterVersionsWanted, versionFaults } from "../../platform/nats/versions.ts";
import { checkOf, type Finding, shownBytes } from "./finding.ts";
import type { ClockReading, NatsFacts } from "./nats-facts.ts";

const slowRoundTripMs = 50;
const clockToleranceMs = 2_000;
/** Bytes that one event of an SDK may have. */
const eventBytesMax = 1_000_000;

export function checkConnection({
  connectMs,
  place,
  server,
  isEncrypted,
  roundTripMs,
}: NatsFacts): Finding {
  const check = checkOf("nats");
  const name = server.server_name === server.server_id ? "" : ` (${server.server_name})`;
  const cluster = server.cluster === undefined ? "" : ` of cluster ${server.cluster}`;
  const what = `${place}${name}${cluster}, ${isEncrypted ? "TLS" : "no TLS"}, connected in ${connectMs.toFixed(0)} ms`;
  if (roundTripMs === undefined) {
    return check.fail(
      `${what}, and does not answer any more`,
      "look at its log and its machine; a frozen or starved nats-server takes connections and says nothing",
    );
  }
  const found = `${what}, round trip ${roundTripMs.toFixed(1)} ms`;
  if (roundTripMs <= slowRoundTripMs) return check.ok(found);
  return check.warn(
    `${found}: every answer to a client waits at least that long`,
    "run the gateways near NATS, or look what keeps the server busy",
  );
}

/** `version` is that of a server, embedded or not, as `2.10.27` or `2.10.27-RC.1`. */
export function checkVersion(version: string, isClustered: boolean): Finding {
  const check = checkOf("version");
  const [major = 0, minor = 0] = version.split(/[.-]/).map(Number);
  const isBefore = (least: number): boolean => major < 2 || (major === 2 && minor < least);
  const fix = isClustered
    ? `install nats-server ${clusterVersionsWanted}, one node after another`
    : `install nats-server ${clusterVersionsWanted}; 2.10.23 at least`;
  if (isBefore(9)) return check.fail(`nats-server ${version} is older than 2.9`, fix);
  if (isBefore(10)) {
    return check.warn(
      `nats-server ${version} has no sync_interval: a power cut can cost 2 minutes of acknowledged events`,
      `${fix}, and set \`sync_interval: always\``,
    );
  }
  const faults = versionFaults(version, isClustered);
  if (faults.length === 0) return check.ok(`nats-server ${version}`);
  const found = `nats-server ${version} ${faults.map(({ bites }) => bites).join("; ")}`;
  return faults.some(({ isGrave }) => isGrave) ? check.fail(found, fix) : check.warn(found, fix);
}

export function checkMessageBytes(messageBytesMax: number, frameBytesMax: number): Finding {
  const check = checkOf("max_payload");
  const frame = frameBytesMax + headerBytesMax;
  const fix =
    "set `max_payload: 8MB` in nats-server's configuration and reload it (`nats-server --signal reload`)";
  if (messageBytesMax < eventBytesMax) {
    return check.fail(
      `${shownBytes(messageBytesMax)}: larger events are refused (413 event_too_large), and frames are cut to it`,
      fix,
    );
  }
  if (messageBytesMax >= frame)
    return check.ok(`${shownBytes(messageBytesMax)}, a full frame has ${shownBytes(frame)}`);
  return check.warn(
    `${shownBytes(messageBytesMax)}, and a full frame would have ${shownBytes(frame)}: frames are cut to it`,
    `${fix}, or lower PENSTOCK_FRAME_BYTES_MAX to ${messageBytesMax - headerBytesMax}`,
  );
}

export function checkClock(clock: ClockReading | undefined): Finding {
  const check = checkOf("clock");
  if (clock === undefined)
    return check.ok(
      "not compared: NATS reports its time with a stream, and there is no stream yet",
    );
  const { askedMs, serverMs, answeredMs } = clock;
  const aheadMs =
    serverMs > answeredMs ? serverMs - answeredMs : serverMs < askedMs ? serverMs - askedMs : 0;
  const found = `nats-server's is ${(Math.abs(aheadMs) / 1_000).toFixed(1)} s ${aheadMs < 0 ? "behind" : "ahead of"} ours`;
  if (Math.abs(aheadMs) <= clockToleranceMs) return check.ok("agrees with nats-server's");
  return check.warn(
    `${found}: received_at is ours, and streams drop events by the age the server reckons`,
    "synchronise both machines by NTP (`timedatectl set-ntp true`, or chrony)",
  );
}

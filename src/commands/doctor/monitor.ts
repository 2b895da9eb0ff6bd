// Reads the monitoring endpoints of nats-server. The fields that it uses are the same in the
// versions 2.9 to 2.15.

import { get } from "../../platform/base/http-request.ts";
import { objectIn } from "../../platform/base/json.ts";
import { nanosPerMs } from "../../platform/nats/api.ts";
import { checkOf, type Finding } from "./finding.ts";

export interface MonitorFacts {
  readonly url: string;
  readonly serverName: string;
  readonly jetStream: MonitoredJetStream | undefined;
}

interface MonitoredJetStream {
  readonly isDurable: boolean;
  /** The sync interval in ms. nats-server before version 2.10 does not report it. */
  readonly syncIntervalMs: number | undefined;
  readonly storeBytesMax: number;
  readonly reservedBytes: number;
  readonly clusterSize: number;
}

interface Varz {
  readonly server_id?: string;
  readonly server_name?: string;
  readonly jetstream?: {
    readonly config?: { max_storage?: number; sync_interval?: number; sync_always?: boolean };
    readonly stats?: { reserved_storage?: number };
    readonly meta?: { cluster_size?: number };
  };
}

const answerBytesMax = 4_194_304;

/** Reads the endpoints. Rejects with an Error whose message can follow the text "http://…: ". */
export async function readMonitor(url: string, timeoutMs: number): Promise<MonitorFacts> {
  const signal = AbortSignal.timeout(timeoutMs);
  const target = new URL("varz", url.endsWith("/") ? url : `${url}/`);
  const options = { signal, bytesMax: answerBytesMax };
  const { status, body } = await get(target, options).catch((error: Error) => {
    throw signal.aborted ? new Error("no response", { cause: error }) : error;
  });
  if (status !== 200) throw new Error(`responds with ${status}`);
  const varz = objectIn(body.toString("utf8")) as Varz | undefined;
  if (varz?.server_id === undefined)
    throw new Error("the response is not that of nats-server's monitoring port");
  const { config, stats, meta } = varz.jetstream ?? {};
  const jetStream = config && {
    isDurable: config.sync_always === true,
    syncIntervalMs: config.sync_interval && config.sync_interval / nanosPerMs,
    storeBytesMax: config.max_storage ?? 0,
    reservedBytes: stats?.reserved_storage ?? 0,
    clusterSize: meta?.cluster_size ?? 1,
  };
  return { url: shownMonitor(url), serverName: varz.server_name ?? "", jetStream };
}

export function shownMonitor(url: string): string {
  const shown = new URL(url);
  shown.username = "";
  shown.password = "";
  return shown.href.replace(/\/$/, "");
}

export function checkSync(known: {
  embedded?: boolean | undefined;
  monitors: readonly MonitorFacts[];
}): Finding[] {
  const check = checkOf("sync_interval");
  if (known.embedded === true)
    return [check.ok("always, set by the configuration of the embedded nats-server")];
  if (known.embedded === false) {
    const found = "the configuration in the data folder was changed";
    return [check.fail(found, "restart Penstock, which rewrites the file")];
  }
  if (known.monitors.length === 0)
    return [
      check.warn(
        "unknown: the client API does not report it",
        "give nats-server's monitoring port: `penstock doctor --monitor http://host:8222`; or check the jetstream block of its configuration",
      ),
    ];
  return known.monitors.map(({ url, serverName, jetStream }) => {
    const who = serverName === "" ? url : `${serverName} (${url})`;
    if (jetStream === undefined) {
      const fix = "add a jetstream block to the configuration of nats-server";
      return check.fail(`${who} runs without JetStream`, fix);
    }
    if (jetStream.isDurable) return check.ok(`always, at ${who}`);
    return check.warn(
      `${(jetStream.syncIntervalMs ?? 120_000) / 1_000} s at ${who}: a power failure can lose the acknowledged events of that time`,
      "set `sync_interval: always` in the jetstream block of nats-server's configuration, and restart it",
    );
  });
}

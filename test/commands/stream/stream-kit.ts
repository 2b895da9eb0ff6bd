import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { onTestFinished } from "vitest";
import { ensureStreams } from "../../../src/gateway/streams/ensure.ts";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import type { TestNatsServer } from "../../kit/nats-server.ts";
import { silent, temporaryFolder } from "../../kit/processes.ts";
import { type CommandRun, runCommand } from "../../kit/run-command.ts";

const streamBytesMax = 64 * 1_048_576;

interface StreamRig {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly js: JetStreamClient;
  readonly env: Readonly<Record<string, string>>;
  /** Runs `penstock stream`; `set` and `purge` with `--no-effects`. */
  stream(args: readonly string[], typed?: string): Promise<CommandRun>;
  ensure(): Promise<void>;
  publish(project: string, lane?: "live" | "historical"): Promise<number>;
  messages(stream?: string): Promise<number>;
}

export async function streamRig(server: TestNatsServer): Promise<StreamRig> {
  const connection = await connect({ servers: server.url });
  onTestFinished(() => connection.close());
  const manager = await jetstreamManager(connection);
  for (const name of ["PENSTOCK_LIVE_0", "PENSTOCK_HISTORICAL_0"])
    await manager.streams.delete(name).catch(() => {});
  await manager.streams.delete("KV_penstock_limits").catch(() => {});
  const env = {
    PENSTOCK_NATS_URL: server.url,
    PENSTOCK_STREAM_BYTES_MAX: String(streamBytesMax),
    PENSTOCK_DATA_DIR: temporaryFolder(),
  };
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(result.faults.join("; "));
  const ensure = async () => void (await ensureStreams(connection, result.config, silent));
  await ensure();
  const js = jetstream(connection);
  return {
    connection,
    manager,
    js,
    env,
    ensure,
    stream: (args, typed) => {
      const isChecked = args[0] === "set" || args[0] === "purge";
      return runCommand(env, ["stream", ...args, ...(isChecked ? ["--no-effects"] : [])], typed);
    },
    publish: async (project, lane = "live") =>
      (await js.publish(`penstock.${lane}.0.${project}`, "{}\n")).seq,
    messages: async (stream = "PENSTOCK_LIVE_0") =>
      (await manager.streams.info(stream)).state.messages,
  };
}

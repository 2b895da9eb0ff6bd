// The command `penstock testing`: a gateway with a temporary store for automated tests. The admin
// port has additional pages that return stored events or wait for them.

import { once } from "node:events";
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { openNats } from "../commands/nats.ts";
import { TestingPages } from "../commands/testing/pages.ts";
import { StoredRecords } from "../commands/testing/stored-records.ts";
import { countsOf } from "../live/snapshot.ts";
import { createLog } from "../platform/base/log.ts";
import { reachable } from "../platform/base/own-host.ts";
import { lanes, streamName } from "../platform/nats/names.ts";
import type { Config } from "../platform/settings/config.ts";
import { embed } from "./embed.ts";
import { startGateway } from "./gateway.ts";
import { portAccess } from "./require-token.ts";
import { addressOf, demoProject } from "./serve.ts";

export interface TestingOptions {
  readonly json: boolean;
  readonly exitWithStdin: boolean;
}

const memoryFolder = "/dev/shm";

/** Runs until the program is stopped or, with `exitWithStdin`, standard input is closed. */
export async function testing(
  config: Config,
  { json, exitWithStdin }: TestingOptions,
  context: CommandContext,
): Promise<void> {
  if (config.natsUrl !== undefined)
    throw new CommandError("`testing` starts its own NATS: unset PENSTOCK_NATS_URL", usageExitCode);
  if (config.workers !== 1)
    throw new CommandError("`testing` runs one process: unset PENSTOCK_WORKERS", usageExitCode);
  const stop = exitWithStdin
    ? AbortSignal.any([context.stop, closeOf(context.stdin)])
    : context.stop;
  const dataDir = mkdtempSync(join(parentFolder(config), "penstock-testing-"));
  try {
    await run({ ...config, dataDir }, { ...context, stop }, json);
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  }
}

async function run(config: Config, context: CommandContext, json: boolean): Promise<void> {
  const { stop, stdout } = context;
  const log = createLog(config.logLevel);
  const embedded = await embed(config, context, { log, isTemporary: true });
  const closers: (() => Promise<unknown> | unknown)[] = [() => embedded.close()];
  try {
    const effective = { ...config, natsUrl: embedded.url, natsToken: embedded.token };
    const project = await demoProject(effective, log, stop);
    const key = project?.keys.at(-1) ?? "";
    let pages: TestingPages | undefined;
    const gateway = await startGateway(effective, {
      log,
      signal: stop,
      tryKey: key,
      effectsPort: () => undefined,
      adminPages: (request, response) => pages?.answer(request, response) ?? false,
    });
    closers.push(() => gateway.close());
    const connection = await openNats(effective);
    closers.push(() => connection.close());
    const records = new StoredRecords(connection, streamsOf(config));
    records.follow();
    const url = addressOf(config, gateway.port);
    pages = new TestingPages({
      url,
      key,
      records,
      adminHost: config.adminHost,
      wallMs: Date.now,
      access: portAccess(config, "admin"),
      clientWarnings: () => gateway.clientWarnings.latest(),
      async requests() {
        const { answers } = countsOf(await gateway.metrics.counts());
        return Object.values(answers).reduce((sum, count) => sum + count, 0);
      },
    });
    closers.push(() => pages?.close());
    const adminUrl = `http://${reachable(config.adminHost)}:${gateway.adminPort}`;
    stdout.write(
      json
        ? `${JSON.stringify({ url, key, adminUrl })}\n`
        : `Send events to ${url} with the key ${key}\nRead them at ${adminUrl}/testing/events\n`,
    );
    if (!stop.aborted) await once(stop, "abort");
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

function streamsOf({ subjectPrefix, partitions }: Config): string[] {
  return lanes.flatMap((lane) =>
    Array.from({ length: partitions }, (_, partition) =>
      streamName(subjectPrefix, lane, partition),
    ),
  );
}

function parentFolder({ streamBytesMax, rejectedBytes, partitions }: Config): string {
  try {
    const { bavail, bsize } = statfsSync(memoryFolder);
    const needed = 2 * (streamBytesMax * lanes.length + rejectedBytes) * partitions;
    if (bavail * bsize >= needed) return memoryFolder;
  } catch {}
  return tmpdir();
}

function closeOf(stdin: CommandContext["stdin"]): AbortSignal {
  const closed = new AbortController();
  for (const event of ["end", "close", "error"]) stdin.once(event, () => closed.abort());
  stdin.resume();
  return closed.signal;
}

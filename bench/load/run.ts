// One load test from start to end: records the ends of the streams, generates the load, reads the
// stored events, and reports.

import { resolve } from "node:path";
import type { Writable } from "node:stream";
import type { NatsConnection } from "@nats-io/transport-node";
import { CommandError } from "../../src/commands/context.ts";
import { openNats } from "../../src/commands/nats.ts";
import { readConnectionNote } from "../../src/platform/embedded/nats-config.ts";
import { isRunning, type ProcessHost } from "../../src/platform/embedded/process-identity.ts";
import { createLedger, type Ledger, type StoredTally } from "./ledger.ts";
import type { LoadOptions } from "./options.ts";
import { requestsTotal } from "./plan.ts";
import { requireAnswer } from "./reach.ts";
import { progressLine, reportText } from "./report.ts";
import { isKeyRefused, type Result, resultOf } from "./result.ts";
import { markStreams, readStored, type StreamMark } from "./stored.ts";
import { startLoad } from "./threads.ts";

interface LoadContext {
  readonly host: ProcessHost;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly stop: AbortSignal;
}

interface Check {
  readonly connection: NatsConnection;
  readonly marks: readonly StreamMark[];
  readonly events: SharedArrayBuffer;
  readonly ledger: Ledger;
}

const progressEveryMs = 1_000;

/** Throws a CommandError if the run cannot start. */
export async function runLoad(options: LoadOptions, context: LoadContext): Promise<Result> {
  const { plan } = options;
  await requireAnswer(plan);
  const check = await startCheck(options, context);
  try {
    const running = startLoad(plan, check?.events);
    const stop = () => running.stop();
    context.stop.addEventListener("abort", stop, { once: true });
    if (context.stop.aborted) stop();
    let isEndedEarly = false;
    const progress = setInterval(() => {
      const load = running.current();
      if (load.elapsedMs > 0) context.stderr.write(`${progressLine(load)}\n`);
      if (isKeyRefused(load)) {
        isEndedEarly = true;
        stop();
      }
    }, progressEveryMs);
    const load = await running.done.finally(() => clearInterval(progress));
    const interrupted = context.stop.aborted || isEndedEarly;
    const { stored, checkFailure } = await finishCheck(check, options, context);
    const result = resultOf({
      plan,
      load,
      interrupted,
      stored,
      checkFailure,
      p99MsMax: options.p99MsMax,
    });
    context.stdout.write(options.json ? `${JSON.stringify(result)}\n` : `\n${reportText(result)}`);
    return result;
  } finally {
    await check?.connection.close();
  }
}

async function startCheck(options: LoadOptions, context: LoadContext): Promise<Check | undefined> {
  const address = addressOf(options, context.host);
  if (address === undefined) return undefined;
  const connection = await openNats(address);
  try {
    const marks = await markStreams(connection, options.subjectPrefix);
    if (marks.length === 0) {
      throw new CommandError(
        `check what is stored: this NATS has no stream of ${options.subjectPrefix}.live.*.*`,
      );
    }
    const events = new SharedArrayBuffer(requestsTotal(options.plan) * options.plan.batch);
    return { connection, marks, events, ledger: createLedger(events) };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

function addressOf(options: LoadOptions, host: ProcessHost) {
  const { natsUrl, dataDir } = options;
  if (natsUrl !== undefined) return { ...options, natsUrl };
  if (dataDir === undefined) return undefined;
  const note = readConnectionNote(resolve(dataDir));
  if (note === undefined || note.url === "" || !isRunning(note, host)) {
    throw new CommandError(
      `check what is stored: no embedded nats-server runs on the data folder ${dataDir}`,
    );
  }
  return { natsUrl: note.url, natsToken: note.token };
}

async function finishCheck(
  check: Check | undefined,
  { plan, subjectPrefix }: LoadOptions,
  { stderr }: LoadContext,
): Promise<{ stored: StoredTally | undefined; checkFailure: string | undefined }> {
  if (check === undefined) return { stored: undefined, checkFailure: undefined };
  const { connection, marks, ledger } = check;
  stderr.write("reading what is stored\n");
  try {
    await readStored(connection, marks, { ledger, uuidPrefix: plan.uuidPrefix, subjectPrefix });
    return { stored: ledger.tally(), checkFailure: undefined };
  } catch (error) {
    return { stored: undefined, checkFailure: (error as Error).message };
  }
}

// Checks the effects: whether their database answers and could be written, how far it is behind the
// streams, and what could not be applied. A gateway needs none of it: where there is no database
// yet, that is well. Changes nothing.

import { accessSync, constants } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { StoreError } from "../../platform/base/store-error.ts";
import { managerOf, streamInfoOf } from "../../platform/nats/api.ts";
import type { Config } from "../../platform/settings/config.ts";
import { requireInstallation } from "../../readers/effects/store/installation.ts";
import {
  type OpenReader,
  readerAt,
  type StorePlace,
  shownPlace,
  storePlace,
} from "../../readers/effects/store/open.ts";
import type { Totals } from "../../readers/effects/store/port.ts";
import { isAbsent } from "../../readers/effects/store/sqlite/file-access.ts";
import { lagOf, type StreamStatus, streamStatuses } from "../../readers/effects/streams/lag.ts";
import type { Position } from "../../readers/effects/types.ts";
import type { CommandContext } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import { counted } from "../terminal.ts";
import { lagSecondsMax } from "./effects-port.ts";
import { checkOf, type Finding } from "./finding.ts";

const databaseTimeoutMs = 5_000;

/** Never rejects. */
export async function checkEffects(config: Config, context: CommandContext): Promise<Finding[]> {
  const check = checkOf("effects");
  const place = storePlace(config);
  if (place.kind === "sqlite" && isAbsent(place.file))
    return [check.ok(`no database yet: \`penstock effects\` makes ${place.file}`)];
  try {
    const reader = await readerAt(place);
    try {
      return await checkDatabase(reader, { place, config, context });
    } finally {
      await reader.close();
    }
  } catch (error) {
    const found = error instanceof StoreError ? "" : `${shownPlace(place)}: `;
    return [check.fail(`${found}${(error as Error).message}`, "PENSTOCK_EFFECTS_URL")];
  }
}

interface Checked {
  readonly place: StorePlace;
  readonly config: Config;
  readonly context: CommandContext;
}

async function checkDatabase(
  reader: OpenReader,
  { place, config, context }: Checked,
): Promise<Finding[]> {
  const check = checkOf("effects");
  const installation = { prefix: config.subjectPrefix, shown: shownPlace(place) };
  const asked = Promise.all([
    reader.totals(),
    reader.positions(),
    requireInstallation(reader, installation),
  ]);
  const late = delay(databaseTimeoutMs, undefined, { ref: false });
  const answer = await Promise.race([asked, late]);
  if (answer === undefined) {
    const found = `${shownPlace(place)} does not answer within ${databaseTimeoutMs / 1_000} s`;
    return [check.fail(found, "look at the database, or set PENSTOCK_EFFECTS_URL to another")];
  }
  const [totals, applied] = answer;
  const fault = place.kind === "sqlite" ? unwritable(place.file) : undefined;
  const { persons, groups } = totals;
  const foreign = await foreignStreams(applied, config, context);
  if (foreign.length > 0)
    return [
      check.warn(
        `${shownPlace(place)} was filled from other streams than those of this NATS, or they were made again since: ${foreign.join(", ")}`,
        "name the database of this NATS in PENSTOCK_EFFECTS_URL (or its PENSTOCK_DATA_DIR)",
      ),
      ...checkTrouble(totals),
    ];
  return [
    fault === undefined
      ? check.ok(`${shownPlace(place)}: ${counted(persons, "person")}, ${counted(groups, "group")}`)
      : check.fail(`${fault} cannot be written by this user`, "run this as the user who runs it"),
    ...(await checkLag(applied, config, context)),
    ...checkTrouble(totals),
  ];
}

/** SQLite writes beside the file too. */
function unwritable(file: string): string | undefined {
  return [file, path.dirname(file)].find((one) => {
    try {
      accessSync(one, constants.W_OK);
      return false;
    } catch {
      return true;
    }
  });
}

/**
 * The streams from which the database was filled and which are not at this NATS as they were then.
 * Empty also if NATS cannot be asked: its own checks tell that.
 */
async function foreignStreams(
  applied: readonly Position[],
  config: Config,
  context: CommandContext,
): Promise<string[]> {
  try {
    const connection = await openNats(findNats(config, context.host));
    try {
      const manager = await managerOf(connection, { timeoutMs: databaseTimeoutMs });
      const found = await Promise.all(
        applied.map(async ({ stream, created, sequence }) => {
          const info = sequence === 0 ? undefined : await streamInfoOf(manager, stream);
          return sequence === 0 || Date.parse(info?.created ?? "") === Date.parse(created)
            ? []
            : [stream];
        }),
      );
      return found.flat();
    } finally {
      await connection.close();
    }
  } catch {
    return [];
  }
}

async function checkLag(
  applied: readonly Position[],
  config: Config,
  context: CommandContext,
): Promise<Finding[]> {
  const check = checkOf("effects lag");
  let streams: readonly StreamStatus[];
  try {
    const connection = await openNats(findNats(config, context.host));
    try {
      const which = { prefix: config.subjectPrefix, applied, nowMs: Date.now() };
      streams = await streamStatuses(connection, which);
    } finally {
      await connection.close();
    }
  } catch {
    // What is wrong with NATS is told by its own checks.
    return [];
  }
  const { messages, seconds } = lagOf(streams);
  const worst = streams.find(({ lagSeconds }) => lagSeconds === seconds);
  if (worst === undefined || seconds < lagSecondsMax)
    return [
      check.ok(messages === 0 ? "all is applied" : `${counted(messages, "message")}, coming in`),
    ];
  const found = `not applied: ${counted(messages, "message")}, the oldest of ${worst.stream} for ${Math.round(seconds)} s`;
  return [check.warn(found, "start `penstock effects`, or see its log and /status")];
}

function checkTrouble({ incidents, rejected }: Totals): Finding[] {
  const seeThem = "`penstock effects status` lists the latest";
  return [
    ...(incidents === 0
      ? []
      : [checkOf("effects loss").warn(`${counted(incidents, "incident")} with streams`, seeThem)]),
    ...(rejected === 0
      ? []
      : [
          checkOf("rejected").warn(
            `${counted(rejected, "part")} of events could not be applied`,
            seeThem,
          ),
        ]),
  ];
}

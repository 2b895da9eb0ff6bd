// Checks the database of the effects, which are optional, so a missing one is no problem.

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
import { checkOf, type Finding } from "./finding.ts";
import { lagSecondsMax } from "./ports.ts";

const databaseTimeoutMs = 5_000;

/** Never rejects. */
export async function checkEffects(config: Config, context: CommandContext): Promise<Finding[]> {
  const check = checkOf("effects");
  const place = storePlace(config);
  if (place.kind === "sqlite" && isAbsent(place.file))
    return [check.ok(`no database yet: \`penstock effects\` creates ${place.file}`)];
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
    const found = `${shownPlace(place)} does not respond within ${databaseTimeoutMs / 1_000} s`;
    return [check.fail(found, "check the database, or set PENSTOCK_EFFECTS_URL to another one")];
  }
  const [totals, applied] = answer;
  const fault = place.kind === "sqlite" ? unwritable(place.file) : undefined;
  const { persons, groups } = totals;
  const foreign = await foreignStreams(applied, config, context);
  if (foreign.length > 0)
    return [
      check.warn(
        `${shownPlace(place)} was built from streams of another NATS, or they were created again since: ${foreign.join(", ")}`,
        "set PENSTOCK_EFFECTS_URL (or PENSTOCK_DATA_DIR) to the database of this NATS",
      ),
      ...checkTrouble(totals),
    ];
  return [
    fault === undefined
      ? check.ok(`${shownPlace(place)}: ${counted(persons, "person")}, ${counted(groups, "group")}`)
      : check.fail(
          `${fault} cannot be written by this user`,
          "run doctor as the user who runs `penstock effects`",
        ),
    ...(await checkLag(applied, config, context)),
    ...checkTrouble(totals),
  ];
}

/** SQLite also creates files in the folder. */
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
 * Returns the streams of the database that do not exist in this NATS, or were created again.
 * Returns none if NATS does not respond, which the checks of NATS report.
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
    // The checks of NATS report its problems.
    return [];
  }
  const { messages, seconds } = lagOf(streams);
  const worst = streams.find(({ lagSeconds }) => lagSeconds === seconds);
  if (worst === undefined || seconds < lagSecondsMax)
    return [
      check.ok(
        messages === 0
          ? "everything is applied"
          : `lag ${counted(messages, "message")}, catching up`,
      ),
    ];
  const found = `not applied: ${counted(messages, "message")}; the oldest of ${worst.stream} is ${Math.round(seconds)} s old`;
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

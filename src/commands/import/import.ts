// Imports files of events into a gateway as history, over HTTP. See docs/guides/importing.md.

import { createNativeScanner } from "../../records/native.ts";
import { type CommandContext, CommandError, usageExitCode } from "../context.ts";
import { counted, forTerminal } from "../terminal.ts";
import { grouped } from "./counts.ts";
import { FileImport } from "./file-import.ts";
import { formatNamed } from "./formats/detect.ts";
import { StateFile } from "./import-state.ts";
import { durationText, Progress } from "./progress.ts";
import { Sender } from "./sender.ts";
import { TimeZone } from "./times.ts";

export interface ImportOptions {
  readonly url?: string;
  readonly key?: string;
  readonly format: string;
  readonly groupType: string;
  readonly dryRun: boolean;
  readonly strict: boolean;
  readonly allowLoss: boolean;
  readonly timeZone?: string;
  readonly restart: boolean;
  readonly sameProject: boolean;
  readonly state?: string;
  readonly giveUpAfter?: number;
  readonly gzip: boolean;
  readonly batchBytes: number;
  readonly lineBytesMax: number;
}

const stateEnding = ".penstock-import";
const linesMax = 32_768;

/**
 * Imports the files. Rejects with a CommandError if the import fails. Without --allow-loss, it also
 * rejects if an event is lost.
 */
export async function importFiles(
  files: readonly string[],
  options: ImportOptions,
  context: CommandContext,
): Promise<void> {
  const { stderr, stop } = context;
  const { url, key, timeZone } = checked(files, options);
  const progress = new Progress({ stderr, monotonicMs: () => performance.now() });
  const { gzip, giveUpAfter = Number.POSITIVE_INFINITY } = options;
  const trouble = reportsOf(progress);
  const sender = options.dryRun
    ? undefined
    : new Sender({ url, gzip, stop, giveUpAfterMs: giveUpAfter * 1_000, trouble });
  const found = { notStored: 0, warned: 0, linesLost: 0, partsLost: 0 };
  try {
    for (const file of files) {
      const one = new FileImport({
        file,
        url,
        key,
        sender,
        progress,
        stop,
        createScanner: createNativeScanner,
        lineBytesMax: options.lineBytesMax,
        restart: options.restart,
        sameProject: options.sameProject,
        format: formatNamed(options.format),
        formatOptions: { groupType: options.groupType, timeZone },
        limits: { bytesMax: options.batchBytes, linesMax },
        stateFile: stateFileOf(file, options),
        // Standard input is only opened if it is read, because it would keep the process running.
        stdin: () => context.stdin,
      });
      await runOne(file, one, { dryRun: options.dryRun, context, progress });
      found.notStored += one.counts.notStored;
      found.warned += one.counts.warned;
      found.linesLost += one.counts.linesLost;
      found.partsLost += one.counts.partsLost;
      if (one.isStopped) throw new CommandError(`import: ${stoppedText(file, options)}`);
    }
  } finally {
    sender?.close();
  }
  const { notStored, warned, linesLost, partsLost } = found;
  if (options.strict && notStored + warned > 0)
    throw new CommandError(
      `import --strict: lines not stored: ${grouped(notStored)}, with a warning: ${grouped(warned)}`,
    );
  if (options.allowLoss || linesLost + partsLost === 0) return;
  const how = options.dryRun
    ? "listed above by line"
    : "counted above; --dry-run lists them by line";
  const lost = [
    ...(linesLost > 0 ? [counted(linesLost, "line")] : []),
    ...(partsLost > 0 ? [`${counted(partsLost, "part")} of stored lines`] : []),
  ].join(" and ");
  throw new CommandError(`import: not stored: ${lost}, ${how}. Use --allow-loss to accept this`);
}

async function runOne(
  file: string,
  one: FileImport,
  { dryRun, context, progress }: { dryRun: boolean; context: CommandContext; progress: Progress },
): Promise<void> {
  const { stdout, stderr } = context;
  const name = file === "-" ? "standard input" : file;
  const sinceMonotonicMs = performance.now();
  const say = (): void => {
    progress.end();
    const seconds = (performance.now() - sinceMonotonicMs) / 1_000;
    const [first = "", ...more] = one.isDoneBefore
      ? one.counts.earlierSummary()
      : one.counts.summary(dryRun ? "would be stored" : "stored");
    const lines = [`${name}: ${first}, in ${durationText(seconds)}`, ...more];
    stdout.write(`${forTerminal(lines.join("\n"))}\n`);
  };
  try {
    await one.run();
  } catch (error) {
    if (one.hasEvents) say();
    throw error;
  }
  say();
  if (one.isDoneBefore)
    stderr.write(`import: ${name} was imported before; use --restart to import it again\n`);
}

/** Returns a message that states if the import can resume, so that the file is not removed. */
function stoppedText(file: string, { dryRun }: ImportOptions): string {
  if (dryRun) return "stopped before the end";
  return file === "-"
    ? "stopped before the end; the position in standard input is not saved"
    : "stopped before the end; run the same command to resume";
}

interface Checked {
  readonly url: URL;
  readonly key: string;
  readonly timeZone: TimeZone | undefined;
}

function usage(message: string): never {
  throw new CommandError(`import: ${message}`, usageExitCode);
}

function checked(files: readonly string[], options: ImportOptions): Checked {
  const { url, key, dryRun, state, strict, allowLoss } = options;
  if (strict && allowLoss) usage("--strict and --allow-loss cannot be combined");
  const timeZone = timeZoneOf(options);
  if (state !== undefined && files.length > 1) usage("--state can only be used with one file");
  if (files.filter((file) => file === "-").length > 1)
    usage("standard input can be given only once");
  if (dryRun) return { url: new URL("http://localhost/"), key: "dry", timeZone };
  if (url === undefined || key === undefined) return usage("--url and --key are required");
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    return usage(
      `--url must be the URL of a gateway, such as http://127.0.0.1:8000 (got "${url}")`,
    );
  return { url: parsed, key, timeZone };
}

function timeZoneOf({ timeZone, format }: ImportOptions): TimeZone | undefined {
  if (timeZone === undefined) return undefined;
  if (format !== "auto" && !formatNamed(format)?.hasLocalTimes)
    usage(`--time-zone does not apply: the format ${format} has no local times`);
  try {
    return new TimeZone(timeZone);
  } catch {
    return usage(
      `--time-zone must be a name such as Asia/Kolkata, or an offset such as +05:30 (got "${timeZone}")`,
    );
  }
}

function stateFileOf(file: string, { state, dryRun }: ImportOptions): StateFile | undefined {
  if (dryRun) return undefined;
  if (state !== undefined) return new StateFile(state);
  return file === "-" ? undefined : new StateFile(`${file}${stateEnding}`);
}

function reportsOf(progress: Progress): (why: string | undefined) => void {
  let lastMessage = "";
  return (why) => {
    if (why === undefined && lastMessage !== "") progress.say("the gateway responds again");
    else if (why !== undefined && why !== lastMessage) progress.say(`${why}: retrying`);
    lastMessage = why ?? "";
  };
}

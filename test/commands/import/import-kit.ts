import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { commandWorld } from "../../kit/command-context.ts";

interface Ran {
  readonly out: string;
  readonly err: string;
  readonly error: (Error & { readonly exitCode?: number }) | undefined;
}

interface RunOptions {
  readonly stdin?: string;
  readonly stopper?: (stop: AbortController) => void;
}

export async function runImport(
  args: readonly string[],
  { stdin, stopper }: RunOptions = {},
): Promise<Ran> {
  const { context, said, stop } = commandWorld(
    {},
    Readable.from(stdin === undefined ? [] : [Buffer.from(stdin)]),
  );
  stopper?.(stop);
  let error: Ran["error"];
  try {
    await commandLine(context).parseAsync(["import", ...args], { from: "user" });
  } catch (thrown) {
    error = thrown as Error;
  }
  return { out: said.out, err: said.err, error };
}

export function fileWith(content: Buffer | string, name = "events.ndjson"): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-import-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}

export function linesOf(count: number, members: object = {}): string {
  let text = "";
  for (let n = 0; n < count; n++) {
    const event = { event: "seen", distinct_id: "u", timestamp: "2024-07-06T12:00:00.000Z" };
    text += `${JSON.stringify({ ...event, properties: { n }, ...members })}\n`;
  }
  return text;
}

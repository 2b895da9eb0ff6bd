import { bodyHead, bodyOf, type LineNote, paddingOf } from "../../../src/commands/import/batch.ts";
import { Batches, type BatchesOptions } from "../../../src/commands/import/batches.ts";
import { createNativeScanner } from "../../../src/records/native.ts";

const head = bodyHead("phc_test");

interface Bodies {
  readonly bodies: string[];
  readonly lines: (readonly number[])[];
  readonly notes: LineNote[];
  readonly done: { readonly lines: number; readonly fingerprint: string }[];
}

export async function bodiesOf(
  chunks: readonly (string | Buffer)[],
  options: Partial<BatchesOptions> = {},
): Promise<Bodies> {
  const batches = new Batches({
    name: "events.ndjson",
    format: undefined,
    done: undefined,
    formatOptions: { groupType: "company" },
    limits: { bytesMax: 100_000, linesMax: 1_000 },
    lineBytesMax: 100_000,
    createScanner: createNativeScanner,
    begun: () => {},
    ...options,
  });
  const found: Bodies = { bodies: [], lines: [], notes: [], done: [] };
  for await (const batch of batches.of(buffers(chunks))) {
    if (batch.lines.length > 0) {
      found.bodies.push(bodyOf(head, batch.items, paddingOf(head, batch.items)).toString("utf8"));
      found.lines.push(batch.lines);
    }
    found.notes.push(...batch.notes);
    found.done.push({ lines: batch.lastLine, fingerprint: batch.fingerprint });
  }
  return found;
}

async function* buffers(chunks: readonly (string | Buffer)[]): AsyncGenerator<Buffer, void, void> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

// Which form of messages this version can read.

import { schemaHeader, schemaKnown } from "../../platform/nats/names.ts";
import { storedText } from "./stored-stream.ts";

interface Headers {
  get(name: string): string;
}

/**
 * The schema of a message that this version cannot read, and what to do, to stand behind "it has".
 * Undefined: it can. A message without the header is none of the gateway's: its lines are looked
 * at, and rejected.
 */
export function unknownSchema(headers: Headers | undefined): string | undefined {
  const found = headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schemaKnown) return undefined;
  return `the schema "${storedText(found.slice(0, 40))}", this version knows ${schemaKnown} alone: use a newer Penstock for it`;
}

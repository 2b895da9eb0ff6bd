// Which form of messages this version can read.

import type { PulledMessage } from "./pull.ts";
import { storedText } from "./stored-stream.ts";

const schemaHeader = "Penstock-Schema";
const schema = "1";

/**
 * What is wrong with the schema of a message. One without the header is none of the gateway's: its
 * lines are looked at, and rejected.
 */
export function unknownSchema({ message, sequence }: PulledMessage): string | undefined {
  const found = message.headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schema) return undefined;
  return `message ${sequence} has the schema "${storedText(found.slice(0, 40))}", this version knows ${schema} alone: use a newer Penstock for it`;
}

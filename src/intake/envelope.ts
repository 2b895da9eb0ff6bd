// What a request says of itself, apart from its items: whose it is, and on which lane it goes.
// Reads the scan table's header. Must not look at items.

import type { Buffer } from "node:buffer";
import type { Problem } from "../errors.ts";
import { Header, ScanStatus, TokenType } from "../scan/table.ts";
import type { Lane, MeteredProject, ProjectLookup } from "../types.ts";

/**
 * A key has 200 characters at most, however many of them are escaped and whatever white space is around it. What is longer is not read:
 * it may be as long as a body.
 */
const keyTokenBytesMax = 4_096;
/** Keys are of printable characters. */
const nobodysKey = "\0";

export interface Envelope {
  readonly project: MeteredProject;
  readonly lane: Lane;
}

/** The problem of a body that did not scan Ok. */
export function scanProblem(status: ScanStatus, table: Uint32Array): Problem {
  const offset = table[Header.ErrorOffset]!;
  switch (status) {
    case ScanStatus.Empty:
      return { code: "empty_body", detail: "The body holds nothing but white space" };
    case ScanStatus.InvalidUtf8:
      return {
        code: "invalid_encoding",
        detail: `The body is not valid UTF-8: first malformed byte at offset ${offset}`,
      };
    case ScanStatus.OutOfMemory:
      return { code: "overloaded", detail: "There is not enough memory to scan the body" };
    default:
      return { code: "invalid_json", detail: `The body is not valid JSON: unexpected input at byte offset ${offset}` };
  }
}

/** The envelope of the body in the table, or what is wrong with it. The key is judged before the shape of the batch. */
export function readEnvelope(body: Buffer, table: Uint32Array, projects: ProjectLookup): Envelope | Problem {
  if (table[Header.RootType] !== TokenType.Object) {
    return { code: "invalid_payload", detail: "The body must be a JSON object: an event, or a batch of events" };
  }
  const key = readKey(body, table);
  if (key === undefined) {
    return { code: "missing_api_key", detail: "api_key (or token) must be a string that is not empty" };
  }
  const project = projects.byKey(key);
  if (project === undefined) return noProject(key, projects);
  if (!project.enabled) return { code: "project_disabled", detail: "The project is switched off" };
  const batchType = table[Header.BatchType]!;
  if (batchType === TokenType.Absent) return { project, lane: "live" };
  if (batchType !== TokenType.Array) return { code: "invalid_payload", detail: "batch must be an array" };
  switch (table[Header.HistoricalType]) {
    case TokenType.True:
      return { project, lane: "historical" };
    case TokenType.False:
    case TokenType.Null:
    case TokenType.Absent:
      return { project, lane: "live" };
    default:
      return { code: "invalid_payload", detail: "historical_migration must be true or false" };
  }
}

function noProject(key: string, projects: ProjectLookup): Problem {
  const why = projects.refusalOf(key);
  if (why !== undefined) return { code: "unavailable", detail: why };
  return { code: "unknown_api_key", detail: "No project has this API key" };
}

/** `api_key`, or `token` where there is no `api_key`; undefined when neither is a string with something in it. */
function readKey(body: Buffer, table: Uint32Array): string | undefined {
  const type = table[Header.ApiKeyType]!;
  const absent = type === TokenType.Absent || type === TokenType.Null || type === TokenType.EmptyString;
  const key = absent
    ? keyText(body, table[Header.AltKeyType]!, table[Header.AltKeyStart]!, table[Header.AltKeyEnd]!)
    : keyText(body, type, table[Header.ApiKeyStart]!, table[Header.ApiKeyEnd]!);
  return key === "" ? undefined : key;
}

function keyText(body: Buffer, type: number, start: number, end: number): string {
  if (type !== TokenType.PlainString && type !== TokenType.EscapedString) return "";
  if (end - start > keyTokenBytesMax) return nobodysKey;
  if (type === TokenType.EscapedString) return (JSON.parse(body.toString("utf8", start, end)) as string).trim();
  // Read as Latin-1: keys are ASCII, and what is not cannot match one.
  return body.toString("latin1", start + 1, end - 1).trim();
}

// Reads the project and lane of a request from the header of the scan table, but no items.

import type { Buffer } from "node:buffer";
import { firstProject, type Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import { Header, keyTokenBytesMax, ScanStatus, TokenType } from "../../records/table.ts";
import type { MeteredProject, ProjectLookup } from "../projects/project.ts";
import { unknownKeyDetail } from "./hints.ts";
import { jsonProblem, kindOfBody } from "./json-fault.ts";

const rootBytesRead = 64;
/** This replaces a text that is too long to be a key. No key contains this character. */
const unmatchedKey = "\0";

export interface Envelope {
  readonly project: MeteredProject;
  readonly lane: Lane;
}

/** `markBytes` is the length of the byte order mark at the start of the body. */
export function scanProblem(
  status: ScanStatus,
  { body, table, markBytes }: { body: Buffer; table: Uint32Array; markBytes: number },
): Problem {
  const offset = table[Header.ErrorOffset]!;
  switch (status) {
    case ScanStatus.Empty:
      return { code: "empty_body", detail: "The body contains only white space" };
    case ScanStatus.InvalidUtf8:
      return { code: "invalid_encoding", detail: notUtf8(body, markBytes + offset) };
    case ScanStatus.OutOfMemory:
      return { code: "overloaded", detail: "There is not enough memory to scan the body" };
    default:
      return { code: "invalid_json", ...jsonProblem(body, offset, markBytes) };
  }
}

function notUtf8(body: Buffer, offset: number): string {
  const kind = kindOfBody(body);
  return `The body is not valid UTF-8: first malformed byte at offset ${offset}${kind === undefined ? "" : `: ${kind}`}`;
}

export function readEnvelope(
  body: Buffer,
  table: Uint32Array,
  projects: ProjectLookup,
): Envelope | Problem {
  const rootType = table[Header.RootType]!;
  if (rootType !== TokenType.Object && rootType !== TokenType.Array) {
    return invalidPayload(noEvents(body, rootType));
  }
  if (rootType === TokenType.Array && table[Header.ItemCount] === 0) {
    return invalidPayload("The array contains no event");
  }
  const key = keyText(body, table);
  if (key === "") return { code: "missing_api_key", detail: missingKey(table) };
  const other = table[Header.OtherKeyItem]!;
  if (other !== 0) {
    const detail = `Item ${other} of the array has a different API key from an earlier item: all items must belong to the same project`;
    return { code: "unknown_api_key", detail };
  }
  const project = projectOf(key, projects);
  if ("code" in project) return project;
  const batchType = table[Header.BatchType]!;
  if (batchType === TokenType.Absent) return { project, lane: "live" };
  if (batchType !== TokenType.Array) return invalidPayload("batch must be an array");
  const lane = laneOf(table);
  return typeof lane === "string" ? { project, lane } : lane;
}

export function projectOf(key: string, projects: ProjectLookup): MeteredProject | Problem {
  const project = projects.byKey(key);
  if (project === undefined) return noProject(key, projects);
  if (!project.enabled) return { code: "project_disabled", detail: "The project is disabled" };
  return project;
}

export function laneOf(table: Uint32Array): Lane | Problem {
  switch (table[Header.HistoricalType]) {
    case TokenType.True:
      return "historical";
    case TokenType.False:
    case TokenType.Null:
    case TokenType.Absent:
      return "live";
    default:
      return invalidPayload("historical_migration must be true or false");
  }
}

function missingKey(table: Uint32Array): string {
  if (table[Header.BatchType] !== TokenType.Absent)
    return "api_key (or token) must be a string that is not empty";
  const places = "api_key (or token, $token, properties.token) must be a string that is not empty";
  return table[Header.RootType] === TokenType.Array
    ? `${places}, in at least one item of the array`
    : places;
}

const rootWords: Readonly<Record<number, string>> = {
  [TokenType.Null]: "null",
  [TokenType.False]: "false",
  [TokenType.True]: "true",
  [TokenType.Number]: "a number",
  [TokenType.PlainString]: "text",
  [TokenType.EscapedString]: "text",
  [TokenType.EmptyString]: "empty text",
};

function noEvents(body: Buffer, type: number): string {
  const isEncodedTwice =
    type === TokenType.EscapedString &&
    /^\s*"\s*[{[]/.test(body.toString("latin1", 0, rootBytesRead));
  const word = `${rootWords[type] ?? "something else"}${isEncodedTwice ? " that looks like JSON encoded twice" : ""}`;
  return `The body must be a JSON object or array (an event, a batch of events, an array of events): it is ${word}`;
}

function noProject(key: string, projects: ProjectLookup): Problem {
  const why = projects.refusalOf(key);
  if (why !== undefined) return { code: "unavailable", detail: why };
  const detail = unknownKeyDetail(key);
  if (!projects.hasNone) return { code: "unknown_api_key", detail };
  const next = `its operator can add a project with ${firstProject}, which prints the key to send`;
  return { code: "unknown_api_key", detail: `${detail}. This gateway has no project yet: ${next}` };
}

function keyText(body: Buffer, table: Uint32Array): string {
  const type = table[Header.KeyType]!;
  if (type !== TokenType.PlainString && type !== TokenType.EscapedString) return "";
  const [start, end] = [table[Header.KeyStart]!, table[Header.KeyEnd]!];
  if (end - start > keyTokenBytesMax) return unmatchedKey;
  if (type === TokenType.EscapedString)
    return (JSON.parse(body.toString("utf8", start, end)) as string).trim();
  // Decodes Latin-1, because this is fast. Keys are ASCII, so other text matches no key.
  return body.toString("latin1", start + 1, end - 1).trim();
}

export function invalidPayload(detail: string): Problem {
  return { code: "invalid_payload", detail };
}

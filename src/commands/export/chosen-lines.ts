// Chooses the lines of a message that an export takes: those of one project that were received in a
// range of time. They leave as they are stored.

import { isOfManyProjects } from "../../platform/nats/names.ts";

export interface Choice {
  readonly project: string;
  /** Received at this time or later; undefined: from the beginning on. In the form of a record. */
  readonly from: string | undefined;
  /** Received before this time. */
  readonly to: string | undefined;
}

interface ChosenLines {
  /** With a line feed behind each. */
  readonly text: string;
  readonly events: number;
  /** Lines that are no record. */
  readonly unreadable: number;
}

interface LineFields {
  readonly project_id?: unknown;
  readonly received_at?: unknown;
}

export function chosenLines(subject: string, text: string, choice: Choice): ChosenLines {
  const { project, from, to } = choice;
  const isShared = isOfManyProjects(subject);
  const chosen: string[] = [];
  let unreadable = 0;
  for (const line of linesOf(text)) {
    const fields = fieldsOf(line);
    if (fields === undefined) {
      unreadable++;
      continue;
    }
    const { project_id: owner, received_at: receivedAt = "" } = fields;
    if (isShared && owner !== project) continue;
    if (from !== undefined && String(receivedAt) < from) continue;
    if (to !== undefined && String(receivedAt) >= to) continue;
    chosen.push(line);
  }
  return {
    text: chosen.map((line) => `${line}\n`).join(""),
    events: chosen.length,
    unreadable,
  };
}

/** Without blank ones. */
function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => !/^\s*$/.test(line));
}

/**
 * Undefined: the line is no record. In a record these two come before anything that a client names,
 * and within a text their quotes would be escaped: so the first of each is the record's own.
 */
function fieldsOf(line: string): LineFields | undefined {
  const project = textOf(line, '"project_id":"');
  const receivedAt = textOf(line, '"received_at":"');
  const isWhole = line.startsWith('{"uuid":"') && line.endsWith("}");
  if (isWhole && project !== undefined && receivedAt !== undefined)
    return { project_id: project, received_at: receivedAt };
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function textOf(line: string, before: string): string | undefined {
  const at = line.indexOf(before);
  if (at < 0) return undefined;
  const from = at + before.length;
  const end = line.indexOf('"', from);
  return end < 0 ? undefined : line.slice(from, end);
}

// The process log: JSON lines on standard error, ISO time. Callers pass what happened and counts;
// keys, bodies and event contents never come here. Every room writes to a `Log`. Only this file
// knows that the log is made with pino.

import { destination, pino, stdTimeFunctions } from "pino";

type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal";

/** The log that rooms write to. Code that needs one level alone asks for `Pick<Log, "warn">`. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/**
 * The log of the process itself. It also has a level for debugging, and one for the words that the
 * process dies with.
 */
export interface ProcessLog extends Log {
  debug(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
  /** A log whose every line has these fields too. */
  child(fields: object): ProcessLog;
}

const STANDARD_ERROR = 2;

/**
 * A log that drops lines below `level`. Lines are written before the call returns, so that the last
 * words of a process that dies are there. `stream` is for tests.
 */
export function createLog(
  level: LogLevel,
  stream: { write(line: string): void } = destination({ dest: STANDARD_ERROR, sync: true }),
): ProcessLog {
  return pino({ level, timestamp: stdTimeFunctions.isoTime, base: { name: "penstock" } }, stream);
}

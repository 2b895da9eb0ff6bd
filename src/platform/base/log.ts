// The process log: JSON lines on standard error, ISO time. Callers log events of the process and
// counts. Keys, bodies and event contents must never be logged. Only this file depends on pino.

import { destination, pino, stdTimeFunctions } from "pino";

type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal";

/** The interface of the log. If code needs only one level, it takes `Pick<Log, "warn">`. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The log of the process, with additional levels for debugging and for fatal errors. */
export interface ProcessLog extends Log {
  debug(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
  /** Returns a log that adds these fields to every line. */
  child(fields: object): ProcessLog;
}

const STANDARD_ERROR = 2;

/**
 * Returns a log that drops lines below `level`. Lines are written synchronously, so that a process
 * that dies loses no line. `stream` is for tests.
 */
export function createLog(
  level: LogLevel,
  stream: { write(line: string): void } = destination({ dest: STANDARD_ERROR, sync: true }),
): ProcessLog {
  return pino({ level, timestamp: stdTimeFunctions.isoTime, base: { name: "penstock" } }, stream);
}

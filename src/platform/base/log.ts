// The log of the process: JSON lines on standard error. Keys, bodies and contents of events must
// never be logged.

import { destination, pino, stdTimeFunctions } from "pino";

type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal";

export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ProcessLog extends Log {
  debug(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
  child(fields: object): ProcessLog;
}

const STANDARD_ERROR = 2;

/** Creates a log that writes synchronously, so that no line is lost when the process ends. */
export function createLog(
  level: LogLevel,
  stream: { write(line: string): void } = destination({ dest: STANDARD_ERROR, sync: true }),
): ProcessLog {
  return pino({ level, timestamp: stdTimeFunctions.isoTime, base: { name: "penstock" } }, stream);
}

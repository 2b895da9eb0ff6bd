// The closed table of what the HTTP port of the effects answers when it cannot answer, in the form
// of problem details (RFC 9457). It has a table of its own, because the gateway's is of events that
// are sent. No other file of this room makes up a code.

interface ProblemRow {
  readonly status: 400 | 403 | 404 | 405 | 503 | 504;
  readonly title: string;
}

export const problemTable = {
  invalid_parameter: { status: 400, title: "A parameter is not as it must be" },
  foreign_host: { status: 403, title: "This port is not reached under that name" },
  not_found: { status: 404, title: "There is no such thing" },
  method_not_allowed: { status: 405, title: "This port is only read: use GET or HEAD" },
  unavailable: { status: 503, title: "The database does not answer" },
  overloaded: { status: 503, title: "Too many are being answered at once" },
  wait_timed_out: { status: 504, title: "What was waited for has not been applied in time" },
} as const satisfies Record<string, ProblemRow>;

export type ProblemCode = keyof typeof problemTable;

/** An expected failure of a request. `detail` goes to whoever asked. */
export interface ReadProblem {
  readonly code: ProblemCode;
  readonly detail: string;
}

export function problem(code: ProblemCode, detail: string): ReadProblem {
  return { code, detail };
}

export function problemText({ code, detail }: ReadProblem): string {
  const { status, title } = problemTable[code];
  return `${JSON.stringify({ type: "about:blank", title, status, code, detail })}\n`;
}

// The closed table of errors of the effects' HTTP port, as problem details (RFC 9457).

interface ProblemRow {
  readonly status: 400 | 403 | 404 | 405 | 503 | 504;
  readonly title: string;
}

export const problemTable = {
  invalid_parameter: { status: 400, title: "Invalid parameter" },
  foreign_host: { status: 403, title: "Host name not allowed" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Read-only port: use GET or HEAD" },
  unavailable: { status: 503, title: "The database does not answer" },
  overloaded: { status: 503, title: "Too many concurrent requests" },
  wait_timed_out: { status: 504, title: "The wait for applied events timed out" },
} as const satisfies Record<string, ProblemRow>;

export type ProblemCode = keyof typeof problemTable;

/** An expected failure. `detail` is sent to the client. */
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

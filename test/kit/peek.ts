import type { Peek } from "../../src/gateway/http/port.ts";
import { createPeek } from "../../src/gateway/intake/peek.ts";
import type { MeteredProject } from "../../src/gateway/projects/project.ts";

export function peekOfOneProject(): Peek {
  const project = { id: "a", enabled: true } as MeteredProject;
  return createPeek({
    hasNone: false,
    byKey: (key) => (key === "ka" ? project : undefined),
    refusalOf: () => undefined,
  });
}

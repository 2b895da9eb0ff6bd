// Measures the rules' share of the CPU time of a body, from its scan to its lines.

import { Header } from "../../src/records/table.ts";
import { type CompiledRules, compileRules } from "../../src/rules/compile.ts";
import type { RulesFile } from "../../src/rules/rules-file.ts";
import { createBodyTaker } from "./body-taker.ts";

const { scanner, take } = createBodyTaker(400_000);

function cpuMs(body: Buffer, rules: CompiledRules | undefined): number {
  take(body, rules);
  const began = process.threadCpuUsage();
  take(body, rules);
  const { user, system } = process.threadCpuUsage(began);
  return (user + system) / 1_000;
}

interface RulesCost {
  /** The CPU time of the rules. */
  readonly ms: number;
  readonly events: number;
}

export function costOfRules(file: RulesFile, body: Buffer): RulesCost {
  const rules = compileRules(file, {
    version: 1,
    secret: Buffer.alloc(32, 7),
    saltOf: () => Buffer.alloc(16, 3),
    cookieless: { projectId: "p", rootDomainOf: (host) => host },
  });
  const ms = cpuMs(body, rules) - cpuMs(body, undefined);
  return { ms, events: scanner.table[Header.RowCount]! };
}

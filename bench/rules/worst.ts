// Measures the rules' share of the CPU time of large bodies, with the files and bodies that take the
// longest: node scripts/tool.mjs bench/rules/worst.ts [part of a case's name] [MiB of a body]

import { parseRules } from "../../src/rules/parse.ts";
import { costOfRules } from "./rules-cost.ts";
import { bodyOf, largestSize, worstCases } from "./worst-cases.ts";

const [only = "", mebibytes = "2"] = process.argv.slice(2);

process.stdout.write("ms for 20 MiB  ns per byte  us per event  size  case\n");
for (const [name, file, event] of worstCases.filter(([name]) => name.includes(only))) {
  const size = largestSize(file);
  const parsed = parseRules(file(size));
  if ("errors" in parsed) throw new Error(`${name}: ${parsed.errors[0]!.message}`);
  const body = bodyOf((index) => event(index, size), Number(mebibytes) * 1_048_576);
  const { ms, events } = costOfRules(parsed.rules, body);
  const columns = [
    ((ms * 20 * 1_048_576) / body.length).toFixed(0).padStart(13),
    ((ms * 1e6) / body.length).toFixed(1).padStart(11),
    ((ms * 1e3) / events).toFixed(2).padStart(13),
    String(size).padStart(5),
  ];
  process.stdout.write(`${columns.join(" ")}  ${name}\n`);
}

// Writes every generated page, and prints the names of the changed pages.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { generatedPages } from "./pages.ts";

const root = path.resolve(import.meta.dirname, "../..");

for (const [file, text] of generatedPages()) {
  const place = path.join(root, file);
  const isSame = existsSync(place) && readFileSync(place, "utf8") === text;
  if (!isSame) writeFileSync(place, text);
  process.stdout.write(`docs: ${file} ${isSame ? "unchanged" : "written"}\n`);
}

// Replaces a database, and is killed before the nth call that changes files: `node
// replace-killed-child.ts <nth> <file> <newFile>`.

import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const [nth, file = "", newFile = ""] = process.argv.slice(2);
let left = Number(nth);

function count(): void {
  if (--left === 0) process.kill(process.pid, "SIGKILL");
}

const { fsyncSync, linkSync, renameSync, rmSync } = fs;
Object.assign(fs, {
  fsyncSync: (...args: Parameters<typeof fsyncSync>) => {
    count();
    fsyncSync(...args);
  },
  linkSync: (...args: Parameters<typeof linkSync>) => {
    count();
    linkSync(...args);
  },
  renameSync: (...args: Parameters<typeof renameSync>) => {
    count();
    renameSync(...args);
  },
  rmSync: (...args: Parameters<typeof rmSync>) => {
    count();
    rmSync(...args);
  },
});
syncBuiltinESMExports();
const { replaceDatabase } = await import(
  "../../../../src/readers/effects/store/sqlite/replace-file.ts"
);
replaceDatabase({ file, rebuilt: newFile });

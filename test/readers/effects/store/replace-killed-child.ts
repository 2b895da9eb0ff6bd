// Replaces a database, and is killed (SIGKILL) before the nth call that changes files: `node
// replace-killed-child.ts <nth> <links> <file> <newFile>`.

import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const [nth, links, file = "", newFile = ""] = process.argv.slice(2);
let left = Number(nth);

function count(): void {
  if (--left === 0) process.kill(process.pid, "SIGKILL");
}

const { copyFileSync, fsyncSync, linkSync, renameSync, rmSync } = fs;
Object.assign(fs, {
  fsyncSync: (...args: Parameters<typeof fsyncSync>) => {
    count();
    fsyncSync(...args);
  },
  linkSync: (...args: Parameters<typeof linkSync>) => {
    count();
    if (links !== "with links") throw new Error("EPERM");
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
  copyFileSync: (...args: Parameters<typeof copyFileSync>) => {
    count();
    copyFileSync(...args);
    fs.truncateSync(args[1], 1_000);
    count();
    fs.unlinkSync(args[1]);
    copyFileSync(...args);
  },
});
syncBuiltinESMExports();
const { replaceDatabase } = await import(
  "../../../../src/readers/effects/store/sqlite/replace-file.ts"
);
replaceDatabase({ file, rebuilt: newFile });

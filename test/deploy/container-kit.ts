import { DockerfileParser } from "dockerfile-ast";
import { readDeploy } from "./files-kit.ts";

export const dockerfile = readDeploy("container/Dockerfile");
export const instructions = DockerfileParser.parse(dockerfile).getInstructions();

const ignoreLines = readDeploy("container/Dockerfile.dockerignore")
  .split("\n")
  .filter((line) => /^[^#]/.test(line))
  .map((line) => ({
    sends: line.startsWith("!"),
    pattern: new RegExp(
      `^${line.replace("!", "").replaceAll(".", "\\.").replaceAll("*", "[^/]*")}(/|$)`,
    ),
  }));

/**
 * The last matching line decides; `*` stays within a folder, and a folder includes everything below
 * it.
 */
export function isSent(file: string): boolean {
  return ignoreLines.reduce(
    (sent, { sends, pattern }) => (pattern.test(file) ? sends : sent),
    true,
  );
}

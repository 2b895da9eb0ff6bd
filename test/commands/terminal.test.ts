import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, test } from "vitest";
import { list } from "../../src/commands/project.ts";
import { tail } from "../../src/commands/tail.ts";
import { beginningOf, forTerminal } from "../../src/commands/terminal.ts";
import { isProjectName, openBucket } from "../../src/gateway/projects/registry/bucket.ts";
import { lanes } from "../../src/platform/nats/names.ts";
import { commandWorld } from "../kit/command-context.ts";
import { gatewayForFile } from "../kit/for-file.ts";
import { until } from "../kit/gateway.ts";

const acting =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const hostile = "\u009b2J\u009d0;title\u009c\u0085\u007f\u202edesrever\u2066\u2028\u061c";

const gateway = await gatewayForFile();
const connection = await connect({ servers: gateway.nats.url });

afterAll(() => connection.close());

describe("control characters in names and events", () => {
  test("are written as JSON escapes", () => {
    const value = { [hostile]: hostile, plain: 'é ü 漢字 👩‍👩‍👧 \\ " \n' };
    const escaped = forTerminal(JSON.stringify(value));
    expect(escaped).not.toMatch(acting);
    expect(JSON.parse(escaped)).toEqual(value);
    expect(forTerminal("plain é 漢字\n")).toBe("plain é 漢字\n");
  });

  test("are escaped by tail", async () => {
    const project = await gateway.project();
    const sent = {
      api_key: project.key,
      event: hostile,
      distinct_id: "u",
      properties: { [hostile]: hostile },
    };
    expect((await gateway.post("/capture/", sent)).status).toBe(200);
    const { context, said, stop } = commandWorld();
    const running = tail(gateway.config, { project: project.id, lanes, fromStart: true }, context);
    await until(() => said.all.includes('"event"'));
    stop.abort();
    await running;
    expect(said.all).not.toMatch(acting);
    const line = said.all.split("\n").find((found) => found.startsWith("{"));
    expect(JSON.parse(line ?? "")).toMatchObject({
      event: hostile,
      properties: { [hostile]: hostile },
    });
  });

  test("are escaped in project names that other tools have written", async () => {
    const bucket = await openBucket(connection, {
      prefix: gateway.config.subjectPrefix,
      replicas: 1,
    });
    await bucket.put(
      "odd",
      JSON.stringify({ id: "odd", name: hostile, keys: ["phc_odd"], enabled: true }),
    );
    for (const asJson of [false, true]) {
      const { context, said } = commandWorld();
      await list({ config: gateway.config, context }, asJson);
      expect(said.all).toContain("odd");
      expect(said.all).not.toMatch(acting);
    }
    for (const character of hostile.replaceAll(/[ -~]/g, ""))
      expect(isProjectName(`a${character}`)).toBe(false);
  });
});

test("a text is never cut inside a surrogate pair", () => {
  expect(beginningOf("a😀b", 2)).toBe("a");
  expect(beginningOf("a😀b", 3)).toBe("a😀");
  expect(beginningOf("ab", 5)).toBe("ab");
});

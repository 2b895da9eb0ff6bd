import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { expectTold } from "./matrix-kit.ts";
import { findPythonClient } from "./python-kit.ts";

const { versions, python } = await findPythonClient();
const found = python === undefined ? [] : [python];
const gateway = await gatewayForFile();
const script = path.join(import.meta.dirname, "otel_exporter.py");

describe("OpenTelemetry's Python exporter", () => {
  test("is listed in docs/guides/sdks.md with the tested version", () => {
    expectTold(
      "opentelemetry-exporter-otlp-proto-http",
      versions["opentelemetry-exporter-otlp-proto-http"]!,
    );
  });

  test.each(found.flatMap((program) => [[program, "none"] as const, [program, "gzip"] as const]))(
    "sends spans that the gateway stores as events: %s, compression %s",
    async (program, compression) => {
      const project = await gateway.project();
      const args = [script, gateway.url, project.key, compression];
      const { stdout, stderr } = await promisify(execFile)(program, args, { timeout: 60_000 });
      expect([JSON.parse(stdout), stderr]).toEqual([true, ""]);
      const events = await gateway.events(project);
      const named = new Map(events.map((event) => [event["event"], event]));
      expect(events).toHaveLength(4);
      const trace = named.get("$ai_trace")!["properties"] as Record<string, unknown>;
      const shared = {
        $ai_trace_id: trace["$ai_trace_id"],
        $lib: "posthog-otel",
        $lib_version: "1.2.3",
        "service.name": "shop",
      };
      expect(trace).toMatchObject({ ...shared, $ai_span_name: "invoke_agent" });
      expect(trace["$ai_latency"]).toBeGreaterThan(0);
      const child = { ...shared, $ai_parent_id: trace["$ai_span_id"] };
      expect(named.get("$ai_generation")).toMatchObject({
        distinct_id: "user-1",
        properties: {
          ...child,
          $ai_model: "gpt-5",
          $ai_provider: "openai",
          $ai_stop_reason: "stop",
          $ai_input_tokens: 12,
          $ai_output_tokens: 3,
          $ai_input: [{ role: "user", content: "hi 😀" }],
          $ai_output_choices: [{ role: "assistant", content: "ho", finish_reason: "stop" }],
          "gen_ai.request.stop_sequences": ["a", "b"],
        },
      });
      expect(named.get("$ai_span")).toMatchObject({
        distinct_id: "user-2",
        properties: { ...child, $ai_span_name: "weather" },
      });
      expect(named.get("$ai_embedding")).toMatchObject({
        properties: {
          ...child,
          $ai_is_error: true,
          $ai_error: "ValueError: HTTP 429",
          $ai_http_status: 429,
        },
      });
    },
  );
});

import { describe, expect, test } from "vitest";
import { ClientWarnings } from "../../../../src/gateway/admin/metrics/client-warnings.ts";

const from = (projectId: string, path = "/e/", client = "posthog-js 1.449.0") => ({
  projectId,
  path,
  client,
});

describe("client warnings", () => {
  test("stores at most 20 warnings per second and 50 in total", () => {
    let nowMs = 0;
    const clientWarnings = new ClientWarnings({ wallMs: () => nowMs, monotonicMs: () => nowMs });
    for (let second = 0; second < 4; second++) {
      nowMs = second * 1_000;
      for (let index = 0; index < 1_000; index++) {
        expect(clientWarnings.hasRoom).toBe(index < 20);
        clientWarnings.refused(from(`shop ${index}`, `/${second}`), {
          code: "overloaded",
          detail: `${second} ${index}`,
        });
      }
    }
    const kept = clientWarnings.latest();
    expect(kept.map(({ detail }) => detail)).toEqual([
      ...Array.from({ length: 10 }, (_, index) => `1 ${index + 10}`),
      ...[2, 3].flatMap((second) => Array.from({ length: 20 }, (_, index) => `${second} ${index}`)),
    ]);
    expect(kept.at(-1)).toEqual({
      ...from("shop 19", "/3"),
      atMs: 3_000,
      times: 1,
      status: 503,
      code: "overloaded",
      detail: "3 19",
      events: 0,
    });
  });

  test("merges repeats from one project, path and client", () => {
    let nowMs = 0;
    const clientWarnings = new ClientWarnings({ wallMs: () => nowMs, monotonicMs: () => nowMs });
    const refused = (origin: ReturnType<typeof from>, detail: string) =>
      clientWarnings.refused(origin, { code: "invalid_json", detail });
    refused(from("shop"), "first");
    refused(from("shop", "/batch/"), "elsewhere");
    refused(from("shop", "/e/", "curl 8"), "another");
    nowMs = 5_000;
    refused(from("shop"), "last");
    clientWarnings.notStored(from("shop"), { code: "no_event", detail: "x", events: 3 });
    clientWarnings.notStored(from("shop"), { code: "no_event", detail: "y", events: 4 });
    expect(clientWarnings.latest()).toMatchObject([
      { path: "/batch/", times: 1, detail: "elsewhere" },
      { client: "curl 8", times: 1, detail: "another" },
      { code: "invalid_json", times: 2, detail: "last", atMs: 5_000, events: 0 },
      { code: "no_event", times: 2, detail: "y", events: 7 },
    ]);
  });

  test("lists five unknown keys of a path and client, and merges all others", () => {
    let nowMs = 0;
    const clientWarnings = new ClientWarnings({ wallMs: () => nowMs, monotonicMs: () => nowMs });
    const refused = (key: string) => {
      nowMs += 1_000;
      const detail = `No project has the API key that begins with ${key} (20 characters)`;
      clientWarnings.refused(from(""), { code: "unknown_api_key", detail });
    };
    for (const key of ["phc_EXok", "phc_othe", "phc_othe"]) refused(key);
    expect(clientWarnings.latest()).toMatchObject([
      { times: 1, detail: expect.stringContaining("phc_EXok") },
      { times: 2, detail: expect.stringContaining("phc_othe") },
    ]);
    for (let index = 0; index < 100; index++) refused(`phc_${index}`);
    refused("phc_EXok");
    const kept = clientWarnings.latest();
    expect(kept.map(({ times }) => times)).toEqual([2, 1, 1, 1, 97, 2]);
    expect(kept[4]?.detail).toBe("No project has the API keys: several other keys");
    expect(kept[5]?.detail).toContain("phc_EXok");
  });

  test("computes no source for a warning if the list is full", () => {
    const clientWarnings = new ClientWarnings({ wallMs: () => 0, monotonicMs: () => 0 });
    let asked = 0;
    const origin = {
      ...from("shop"),
      get client() {
        asked++;
        return "curl 8";
      },
    };
    for (let index = 0; index < 1_000; index++)
      clientWarnings.refused(origin, { code: "invalid_json", detail: "" });
    expect(asked).toBe(20);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clientName } from "../../../../src/gateway/http/client/client-name.ts";

describe("the client name", () => {
  test.each([
    ["curl/8.5.0", "curl 8.5.0"],
    ["posthog-node/5.9.1", "posthog-node 5.9.1"],
    ["python-requests/2.31.0", "python-requests 2.31.0"],
    ["PostHog-Go/1.2 (linux)", "PostHog-Go 1.2"],
    ["okhttp", "okhttp"],
    [
      "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
      "Chrome 141",
    ],
    [
      "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.1.2",
      "Edge 141",
    ],
    ["Mozilla/5.0 (X11; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox 128"],
    [
      "Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
      "Safari 604",
    ],
    ["Mozilla/5.0 (something)", "Mozilla"],
    ["", ""],
    ["<script>", ""],
    ["phc_0123456789abcdefghijklmnopqrstuvwxyz", "a key"],
    ["curl-phc_0123456789abc/1", "a key"],
    ["curl/phx_0123456789abc", "a key"],
  ])('for %s is "%s"', (userAgent, name) => {
    expect(clientName(userAgent)).toBe(name);
  });

  test("is short, plain and stable for any User-Agent", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `Mozilla/${text}`),
        ),
        (userAgent) => {
          const name = clientName(userAgent);
          expect(name).toMatch(/^[\w.+-]{0,32}(?: [\w.+-]{1,16})?$/);
          expect(clientName(name)).toBe(name);
        },
      ),
    );
  });
});

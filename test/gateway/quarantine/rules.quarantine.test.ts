import { expect, test } from "vitest";
import type {
  QuarantineOrigin,
  QuarantineTaker,
} from "../../../src/gateway/intake/quarantine-port.ts";
import { compiled, ruleOf } from "../../rules/compiled-rules.ts";
import { IntakeKit, until } from "../intake/intake-kit.ts";

interface Taken {
  readonly origin: QuarantineOrigin;
  readonly items: { text: string; reason: string; rule: string | undefined; version: unknown }[];
  isReported: boolean | undefined;
}

/** A quarantine that records what the intake hands over. */
function recording(): QuarantineTaker & { readonly requests: Taken[] } {
  const requests: Taken[] = [];
  return {
    requests,
    open(origin) {
      const taken: Taken = { origin, items: [], isReported: undefined };
      requests.push(taken);
      return {
        take: ({ body, start, end, reason, rule, rulesVersion: version }) =>
          void taken.items.push({ text: body.toString("utf8", start, end), reason, rule, version }),
        settle(isReported) {
          taken.isReported = isReported;
        },
      };
    },
  };
}

const rules = compiled([
  ruleOf({}, { kind: "remove", paths: ["email"] }),
  ruleOf({ event: ["wrong*"] }, { kind: "quarantine" }),
  ruleOf({ event: ["noise"] }, { kind: "drop" }),
]);

async function sent(batch: readonly object[], isRefused = false) {
  const quarantine = recording();
  const kit = new IntakeKit({ rules, quarantine });
  if (isRefused) kit.outcome = () => "refused";
  const request = kit.send(Buffer.from(JSON.stringify({ api_key: "key_a", batch })));
  await request.work;
  await until(() => request.answer !== undefined);
  return { answer: request.answer, requests: quarantine.requests };
}

const valid = { event: "seen", distinct_id: "u" };
const wrong = { event: "wrong order", distinct_id: "u", properties: { email: "a@example.com" } };

test("an event that a rule quarantines is handed over as sent, with the rule and its version", async () => {
  const { answer, requests } = await sent([valid, wrong, { event: "noise", distinct_id: "u" }]);
  expect(answer).toBe("stored 1, filtered 2");
  expect(requests).toMatchObject([
    {
      origin: { projectId: "a", lane: "live", additions: undefined },
      items: [{ text: JSON.stringify(wrong), reason: "rule", rule: "r1", version: 5 }],
      isReported: true,
    },
  ]);
});

test("if a request has only quarantined events, they are stored with its answer", async () => {
  const { answer, requests } = await sent([wrong, wrong]);
  expect(answer).toBe("stored 0, filtered 2");
  expect(requests).toMatchObject([{ items: [{}, {}], isReported: true }]);
});

test("after a 503, the quarantined events of the request are forgotten", async () => {
  const { answer, requests } = await sent([valid, wrong, { event: "seen" }], true);
  expect(answer).toBe("unavailable");
  expect(requests).toMatchObject([
    { items: [{ reason: "rule" }, { reason: "no_distinct_id" }], isReported: false },
  ]);
});

test("a request without a rejected event opens no quarantine", async () => {
  const { requests } = await sent([valid, { event: "noise", distinct_id: "u" }]);
  expect(requests).toEqual([]);
});

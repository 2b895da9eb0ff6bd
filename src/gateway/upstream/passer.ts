// Begins a request like any other, so that it has the same limits, and passes its body to the
// upstream instead of the intake.

import type { HttpExchange } from "../http/exchange.ts";
import type { LongAnswers } from "../http/long-answers.ts";
import type { FixedAnswer } from "../http/pages/fixed-answer.ts";
import type { WholeBody } from "../http/port.ts";
import type { Passed, Routed } from "../http/router.ts";
import type { HttpRequest, HttpResponse } from "../http/uws.ts";
import type { PassThrough } from "./pass-through.ts";
import { passedHead } from "./passed-head.ts";

type Begin = (response: HttpResponse, request: HttpRequest, routed: Routed) => HttpExchange;
type Pass = (response: HttpResponse, request: HttpRequest, passed: Passed) => void;

export function passerOf(
  passThrough: PassThrough,
  begin: Begin,
  long: Pick<LongAnswers, "holdTooMuch">,
): Pass {
  return (response, request, passed) => {
    const exchange = begin(response, request, passed);
    const { body } = exchange;
    const head = passedHead(request, exchange.clientAddress, {
      ...{ kind: passed.label, path: passed.passedPath, query: passed.passedQuery },
    });
    // The query is for the upstream alone.
    body.queryData = "";
    body.taker = (_, whole) => {
      const left = new AbortController();
      body.cancelWork = () => left.abort();
      const hasRoom = !long.holdTooMuch;
      const asking = { head, body: ownOf(whole), gone: left.signal, hasRoom };
      return passThrough.answerTo(asking).then((answer) => {
        body.cancelWork = undefined;
        if (!("code" in answer)) exchange.answerFixed(answer);
        else if (passed.own === undefined) exchange.answerProblem(answer);
        else exchange.answerFixed(notForLong(passed.own));
      });
    };
  };
}

/** Clients must request the upstream's answer again. */
function notForLong({ status, headers, body }: FixedAnswer): FixedAnswer {
  const others = headers.filter(([name]) => name !== "Cache-Control");
  return { status, headers: [...others, ["Cache-Control", "no-cache"]], body };
}

/** Returns memory that is valid until the request is answered. */
function ownOf({ memory, bytes }: WholeBody): Uint8Array {
  return memory === "owned" ? bytes : Uint8Array.from(bytes);
}

// The spans of requests and messages. Their names are from OpenTelemetry's semantic conventions.
// Spans contain no keys, no event data and no addresses of clients.

import {
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { ErrorCode } from "../base/errors.ts";
import type { MessageSpan, RequestSpan, TracedHead, Tracing } from "../base/tracing.ts";
import { parentIn, type Sampling } from "./sampling.ts";

type Destination = Parameters<RequestSpan["disconnected"]>[0];
type MessageDestination = Parameters<RequestSpan["publishes"]>[1];

const knownMethod = /^(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE)$/;

export class RequestTracing implements Tracing {
  readonly #tracer: Tracer;
  readonly #sampling: Sampling;

  constructor(tracer: Tracer, sampling: Sampling) {
    this.#tracer = tracer;
    this.#sampling = sampling;
  }

  begin(head: TracedHead): RequestSpan | undefined {
    const parent = parentIn(head.traceparent);
    if (!this.#sampling.wants(parent)) return undefined;
    const startMs = performance.now();
    return new SpanOfRequest(this.#tracer, ({ hasProject }) =>
      this.#sampling.takes({ hasProject }) ? this.#start(head, parent, startMs) : undefined,
    );
  }

  #start(
    { method: sent, path, isRoute }: TracedHead,
    parent: SpanContext | undefined,
    startTime: number,
  ): Span {
    const method = knownMethod.test(sent) ? sent : "_OTHER";
    const attributes = {
      "http.request.method": method,
      "url.path": path,
      ...(isRoute && { "http.route": path }),
    };
    const context =
      parent === undefined
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true });
    const verb = method === "_OTHER" ? "HTTP" : method;
    return this.#tracer.startSpan(
      isRoute ? `${verb} ${path}` : verb,
      { kind: SpanKind.SERVER, attributes, startTime },
      context,
    );
  }
}

type StartSpan = (request: { readonly hasProject: boolean }) => Span | undefined;

/** The span starts when it is known whether the request has a project. */
class SpanOfRequest implements RequestSpan {
  readonly #tracer: Tracer;
  #start: StartSpan | undefined;
  #span: Span | undefined;

  constructor(tracer: Tracer, start: StartSpan) {
    this.#tracer = tracer;
    this.#start = start;
  }

  counted(accepted: number, dropped: number): void {
    this.#started(true)?.setAttributes({
      "penstock.events.accepted": accepted,
      "penstock.events.dropped": dropped,
    });
  }

  publishes(message: MessageSpan | undefined, to: MessageDestination): MessageSpan | undefined {
    const request = this.#started(true);
    if (request === undefined) return message;
    if (message instanceof SpanOfMessage) {
      message.link(request);
      return message;
    }
    const { subject, stream } = to;
    const attributes = {
      "messaging.system": "nats",
      "messaging.operation.name": "publish",
      "messaging.operation.type": "send",
      "messaging.destination.name": subject,
      "penstock.stream": stream.name,
    };
    const span = this.#tracer.startSpan(
      `publish ${stream.name}`,
      { kind: SpanKind.PRODUCER, attributes },
      trace.setSpan(ROOT_CONTEXT, request),
    );
    return new SpanOfMessage(span, request);
  }

  answered(status: number, code: ErrorCode | undefined, destination: Destination): void {
    const span = this.#started(destination.projectId !== "");
    span?.setAttribute("http.response.status_code", status);
    this.#end(code, destination, status >= 500);
  }

  disconnected(destination: Destination): void {
    this.#started(destination.projectId !== "");
    this.#end("client_disconnected", destination, false);
  }

  #started(hasProject: boolean): Span | undefined {
    this.#span ??= this.#start?.({ hasProject });
    this.#start = undefined;
    return this.#span;
  }

  #end(error: string | undefined, { projectId, lane }: Destination, isFault: boolean): void {
    const span = this.#span;
    if (span === undefined) return;
    if (projectId !== "") span.setAttribute("penstock.project", projectId);
    if (lane !== undefined) span.setAttribute("penstock.lane", lane);
    if (error !== undefined) span.setAttribute("error.type", error);
    if (isFault) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(performance.now());
  }
}

class SpanOfMessage implements MessageSpan {
  readonly #span: Span;
  readonly #requests: Set<Span>;
  readonly traceparent: string;
  sequence = 0;

  constructor(span: Span, request: Span) {
    this.#span = span;
    this.#requests = new Set([request]);
    const { traceId, spanId } = span.spanContext();
    this.traceparent = `00-${traceId}-${spanId}-01`;
  }

  link(request: Span): void {
    if (this.#requests.has(request)) return;
    this.#requests.add(request);
    this.#span.addLink({ context: request.spanContext() });
    request.addLink({ context: this.#span.spanContext() });
  }

  ended(
    outcome: string,
    code: ErrorCode | undefined,
    { events, length }: { readonly events: number; readonly length: number },
  ): void {
    const span = this.#span;
    span.setAttributes({
      "penstock.events": events,
      "penstock.outcome": outcome,
      "messaging.message.body.size": length,
    });
    if (this.sequence > 0) span.setAttribute("penstock.sequence", this.sequence);
    if (code !== undefined) {
      span.setAttribute("error.type", code);
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  }
}

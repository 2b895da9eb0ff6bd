// The spans of requests and messages. Their names are from OpenTelemetry's semantic conventions.
// Spans contain no keys, no event data and no addresses of clients.

import {
  ROOT_CONTEXT,
  type Span,
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

  begin({ traceparent, method: sent, path, isRoute }: TracedHead): RequestSpan | undefined {
    const parent = parentIn(traceparent);
    if (!this.#sampling.takes(parent)) return undefined;
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
    const span = this.#tracer.startSpan(
      isRoute ? `${verb} ${path}` : verb,
      { kind: SpanKind.SERVER, attributes },
      context,
    );
    return new SpanOfRequest(this.#tracer, span);
  }
}

class SpanOfRequest implements RequestSpan {
  readonly #tracer: Tracer;
  readonly #span: Span;

  constructor(tracer: Tracer, span: Span) {
    this.#tracer = tracer;
    this.#span = span;
  }

  counted(accepted: number, dropped: number): void {
    this.#span.setAttributes({
      "penstock.events.accepted": accepted,
      "penstock.events.dropped": dropped,
    });
  }

  publishes(message: MessageSpan | undefined, to: MessageDestination): MessageSpan {
    if (message instanceof SpanOfMessage) {
      message.link(this.#span);
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
      trace.setSpan(ROOT_CONTEXT, this.#span),
    );
    return new SpanOfMessage(span, this.#span);
  }

  answered(status: number, code: ErrorCode | undefined, destination: Destination): void {
    this.#span.setAttribute("http.response.status_code", status);
    this.#end(code, destination, status >= 500);
  }

  disconnected(destination: Destination): void {
    this.#end("client_disconnected", destination, false);
  }

  #end(error: string | undefined, { projectId, lane }: Destination, isFault: boolean): void {
    const span = this.#span;
    if (projectId !== "") span.setAttribute("penstock.project", projectId);
    if (lane !== undefined) span.setAttribute("penstock.lane", lane);
    if (error !== undefined) span.setAttribute("error.type", error);
    if (isFault) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
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

// The interface between the gateway and OpenTelemetry. All of it is undefined unless traces are
// exported, and then only sampled requests have a span.

import type { ErrorCode } from "./errors.ts";
import type { Lane } from "./lane.ts";

export interface Tracing {
  /** Returns the span of the request if it is sampled. */
  begin(head: TracedHead): RequestSpan | undefined;
}

/** The data of a request that its span has. It must contain neither keys nor event data. */
export interface TracedHead {
  /** The header as the client sent it; "" if absent. */
  readonly traceparent: string;
  readonly method: string;
  /** The path without the query and without possible keys. */
  readonly path: string;
  /** Whether the path is one of the server's own, and not chosen by the client. */
  readonly isRoute: boolean;
}

/** The known destination of a request; the project is "" if it is unknown. */
interface TracedDestination {
  readonly projectId: string;
  readonly lane?: Lane | undefined;
}

/** The span of a request, from its head to its answer. */
export interface RequestSpan {
  /** Adds the number of events that are stored and that broke a rule. */
  counted(accepted: number, dropped: number): void;
  /**
   * Returns the span of a message that gets events of this request. If another request has already
   * started it, links the two spans.
   */
  publishes(message: MessageSpan | undefined, to: MessageDestination): MessageSpan;
  answered(status: number, code: ErrorCode | undefined, destination: TracedDestination): void;
  disconnected(destination: TracedDestination): void;
}

interface MessageDestination {
  readonly subject: string;
  readonly stream: { readonly name: string };
}

/** The span of a message, from its first event to its outcome. */
export interface MessageSpan {
  /** The context of this span, in the format of W3C Trace Context. */
  readonly traceparent: string;
  /** The message's sequence in the stream; 0 until it is acknowledged. */
  sequence: number;
  ended(
    outcome: string,
    code: ErrorCode | undefined,
    message: { readonly events: number; readonly length: number },
  ): void;
}

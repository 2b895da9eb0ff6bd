import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

type Attributes = Readonly<Record<string, string | number | boolean>>;

interface SpanName {
  readonly traceId: string;
  readonly spanId: string;
}

interface ReceivedSpan extends SpanName {
  readonly parentSpanId: string;
  readonly name: string;
  /** The OTLP number of the kind: 2 is a server, 4 is a producer. */
  readonly kind: number;
  readonly attributes: Attributes;
  readonly links: readonly SpanName[];
  /** The OTLP number of the status: 2 is an error. */
  readonly status: number;
  readonly resource: Attributes;
}

interface ReceivedMetric {
  readonly name: string;
  readonly kind: "gauge" | "sum" | "histogram";
  readonly resource: Attributes;
  readonly points: readonly {
    readonly attributes: Attributes;
    readonly value: number;
    readonly bounds: readonly number[];
    readonly counts: readonly number[];
  }[];
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  readonly metrics: ReceivedMetric[];
  readonly headers: Readonly<Record<string, unknown>>[];
  /** Answers a request instead of the receiver. The receiver then does not store the request. */
  answer: ((response: ServerResponse) => void) | undefined;
  close(): void;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const server = createServer(async (request, response) => {
    const sent = Buffer.concat(await request.toArray());
    receiver.headers.push(request.headers);
    if (receiver.answer !== undefined) {
      receiver.answer(response);
      return;
    }
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
    if (request.url === "/v1/traces") receiver.spans.push(...spansIn(body));
    else if (request.url === "/v1/metrics") receiver.metrics.push(...metricsIn(body));
    else response.statusCode = 404;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${port}`,
    spans: [],
    metrics: [],
    headers: [],
    answer: undefined,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return receiver;
}

class Fields {
  readonly #fields = new Map<number, (Buffer | bigint)[]>();

  constructor(bytes: Buffer) {
    let at = 0;
    const varint = (): bigint => {
      let value = 0n;
      for (let shift = 0n; ; shift += 7n) {
        const byte = bytes[at++]!;
        value |= BigInt(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
      }
    };
    const next = (length: number): Buffer => {
      at += length;
      return bytes.subarray(at - length, at);
    };
    while (at < bytes.length) {
      const key = Number(varint());
      const [field, wireType] = [key >>> 3, key & 7];
      let value: Buffer | bigint;
      if (wireType === 0) value = varint();
      else if (wireType === 1) value = next(8).readBigUInt64LE();
      else if (wireType === 5) value = BigInt(next(4).readUInt32LE());
      else value = next(Number(varint()));
      this.#fields.set(field, [...(this.#fields.get(field) ?? []), value]);
    }
  }

  messages(field: number): Fields[] {
    return this.#all(field).map((value) => new Fields(value as Buffer));
  }

  bytes(field: number): Buffer {
    return (this.#all(field)[0] as Buffer | undefined) ?? Buffer.alloc(0);
  }

  integer(field: number): number {
    return Number(this.#all(field)[0] ?? 0n);
  }

  double(field: number): number | undefined {
    const bits = this.#all(field)[0] as bigint | undefined;
    return bits === undefined ? undefined : asDouble(bits);
  }

  has(field: number): boolean {
    return this.#fields.has(field);
  }

  attributes(field: number): Attributes {
    return Object.fromEntries(
      this.messages(field).map((pair) => {
        const value = new Fields(pair.bytes(2));
        const read = value.has(1)
          ? value.bytes(1).toString()
          : value.has(2)
            ? value.integer(2) === 1
            : value.has(3)
              ? value.integer(3)
              : (value.double(4) ?? Number.NaN);
        return [pair.bytes(1).toString(), read];
      }),
    );
  }

  #all(field: number): readonly (Buffer | bigint)[] {
    return this.#fields.get(field) ?? [];
  }
}

function asDouble(bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

function spansIn(body: Buffer): ReceivedSpan[] {
  return new Fields(body).messages(1).flatMap((ofResource) => {
    const resource = new Fields(ofResource.bytes(1)).attributes(1);
    const spans = ofResource.messages(2).flatMap((scope) => scope.messages(2));
    return spans.map((span) => ({
      ...nameOf(span),
      parentSpanId: span.bytes(4).toString("hex"),
      name: span.bytes(5).toString(),
      kind: span.integer(6),
      attributes: span.attributes(9),
      links: span.messages(13).map(nameOf),
      status: new Fields(span.bytes(15)).integer(3),
      resource,
    }));
  });
}

function nameOf(fields: Fields): SpanName {
  return { traceId: fields.bytes(1).toString("hex"), spanId: fields.bytes(2).toString("hex") };
}

const kinds = { 5: "gauge", 7: "sum", 9: "histogram" } as const;

function metricsIn(body: Buffer): ReceivedMetric[] {
  return new Fields(body).messages(1).flatMap((ofResource) => {
    const resource = new Fields(ofResource.bytes(1)).attributes(1);
    const metrics = ofResource.messages(2).flatMap((scope) => scope.messages(2));
    return metrics.flatMap((metric) =>
      Object.entries(kinds).flatMap(([field, kind]) =>
        metric.messages(Number(field)).map((data) => ({
          name: metric.bytes(1).toString(),
          kind,
          resource,
          points: data.messages(1).map((point) => pointOf(point, kind)),
        })),
      ),
    );
  });
}

function pointOf(point: Fields, kind: ReceivedMetric["kind"]): ReceivedMetric["points"][number] {
  if (kind !== "histogram") {
    const value = point.double(4) ?? point.integer(6);
    return { attributes: point.attributes(7), value, bounds: [], counts: [] };
  }
  const words = (field: number): bigint[] => {
    const packed = point.bytes(field);
    return Array.from({ length: packed.length / 8 }, (_, at) => packed.readBigUInt64LE(8 * at));
  };
  return {
    attributes: point.attributes(9),
    value: point.integer(4),
    bounds: words(7).map(asDouble),
    counts: words(6).map(Number),
  };
}

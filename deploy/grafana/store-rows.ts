// The dashboard rows about the store and the processes. Thresholds are those of the alerts.

import { type Row, stat, timeSeries } from "./panels.ts";
import { mean, of, quantiles, rate, sumRate } from "./queries.ts";

export const storeRows: readonly Row[] = [
  {
    title: "Group commit",
    panels: [
      timeSeries({
        title: "Events per frame",
        description:
          "Events that share one acknowledged write. 1 under load means many projects with a frame each, or too few concurrent requests.",
        unit: "short",
        queries: [
          ...quantiles("penstock_frame_events"),
          { expr: mean("penstock_frame_events"), legend: "mean" },
        ],
      }),
      timeSeries({
        title: "Frames by lane",
        description:
          "Frames sent to JetStream, retries not counted. With `sync_interval: always`, each frame outside an atomic batch is an fsync.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_frames_total", "lane"), legend: "{{lane}}" }],
      }),
      timeSeries({
        title: "Atomic batches",
        description:
          "Batches of frames of different projects, each stored with one fsync, by outcome. parted: not acknowledged as a batch, so each frame was sent again alone.",
        unit: "ops",
        queries: [
          { expr: sumRate("penstock_atomic_batches_total", "outcome"), legend: "{{outcome}}" },
        ],
      }),
      timeSeries({
        title: "Frames in atomic batches",
        description:
          "Frames in atomic batches: divided by the batches, the number of frames per fsync. None if few projects send at once, if single frames are as fast, or if nats-server is older than 2.15.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_atomic_batch_frames_sum"), legend: "frames" }],
      }),
      timeSeries({
        title: "Frame size",
        description: "Payload bytes of a frame. Full at PENSTOCK_FRAME_BYTES_MAX.",
        unit: "bytes",
        queries: [
          ...quantiles("penstock_frame_bytes"),
          { expr: mean("penstock_frame_bytes"), legend: "mean" },
        ],
      }),
    ],
  },
  {
    title: "NATS",
    panels: [
      timeSeries({
        title: "Connected",
        description: "1 while the gateway, with all its workers, is connected to NATS.",
        unit: "short",
        max: 1,
        queries: [{ expr: of("penstock_nats_connected"), legend: "{{instance}}" }],
      }),
      timeSeries({
        title: "PubAck latency by lane",
        description:
          "From a frame's first send to its PubAck. After 2 s (PENSTOCK_ACK_TIMEOUT_MS) it is sent again.",
        unit: "s",
        queries: quantiles("penstock_ack_duration_seconds", "lane"),
        thresholds: [{ from: 1, color: "red" }],
      }),
      timeSeries({
        title: "Frames unacknowledged",
        description:
          "Frames sent and not yet acknowledged. At PENSTOCK_FRAMES_UNACKED_MAX (64 per lane) lines are gathered into larger frames.",
        unit: "short",
        queries: [{ expr: of("penstock_frames_unacked"), legend: "{{instance}}" }],
      }),
      timeSeries({
        title: "Retries",
        description: "Share of frames that were sent again, with the same message id.",
        unit: "percentunit",
        queries: [
          {
            expr: `${sumRate("penstock_frame_retries_total")} / ${sumRate("penstock_frames_total")}`,
            legend: "retries",
          },
        ],
        thresholds: [{ from: 0.01, color: "red" }],
      }),
      timeSeries({
        title: "Sends without a good PubAck, by cause",
        description:
          "timeout: slow disks. disconnected: the network. no_responders: no leader or no stream. store_full: a full stream. in_flight: an earlier send waits for a quorum. batch_refused: an atomic batch, whose frames were then sent alone. foreign: another stream or service responded.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_acks_failed_total", "cause"), legend: "{{cause}}" }],
      }),
      timeSeries({
        title: "Duplicates",
        description:
          "Frames and events that were already in the stream: a PubAck arrived too late, or a client sent a large body again. Stored once.",
        unit: "ops",
        queries: [
          { expr: sumRate("penstock_duplicate_frames_total", "lane"), legend: "frames {{lane}}" },
          { expr: sumRate("penstock_duplicate_events_total", "lane"), legend: "events {{lane}}" },
        ],
      }),
    ],
  },
  {
    title: "Streams",
    panels: [
      timeSeries({
        title: "Fill",
        description: "Share of a stream's bytes in use, by lane and partition.",
        unit: "percentunit",
        max: 1,
        queries: [
          {
            expr: `max by (lane, partition) (${of("penstock_stream_bytes")} / ${of("penstock_stream_bytes_max")})`,
            legend: "{{lane}} {{partition}}",
          },
        ],
        thresholds: [
          { from: 0.8, color: "orange" },
          { from: 0.9, color: "red" },
        ],
      }),
      timeSeries({
        title: "Bytes and limit",
        description: "Size and limit of the streams, all partitions of a lane together.",
        unit: "bytes",
        queries: [
          {
            expr: `sum by (lane) (max by (lane, partition) (${of("penstock_stream_bytes")}))`,
            legend: "{{lane}}",
          },
          {
            expr: `sum by (lane) (max by (lane, partition) (${of("penstock_stream_bytes_max")}))`,
            legend: "{{lane}} limit",
          },
        ],
      }),
      timeSeries({
        title: "Time until full",
        description:
          "At the growth rate of the selected time range; empty if a stream does not grow.",
        unit: "s",
        queries: [
          {
            expr: `min by (lane, partition) ((${of("penstock_stream_bytes_max")} - ${of("penstock_stream_bytes")}) / (deriv(${of("penstock_stream_bytes")}[$__range]) > 0))`,
            legend: "{{lane}} {{partition}}",
          },
        ],
      }),
    ],
  },
  {
    title: "Resources",
    panels: [
      timeSeries({
        title: "CPU",
        description: "Cores used, by process. A process uses little more than one core.",
        unit: "short",
        queries: [{ expr: rate("process_cpu_seconds_total"), legend: "{{instance}} {{worker}}" }],
      }),
      timeSeries({
        title: "Resident memory",
        description: "By process. 110 to 145 MiB when idle, plus the bytes in flight.",
        unit: "bytes",
        queries: [{ expr: of("process_resident_memory_bytes"), legend: "{{instance}} {{worker}}" }],
      }),
      timeSeries({
        title: "Bytes in flight",
        description:
          "Bodies in memory and unacknowledged lines, as a share of the budget. At 100 % requests are rejected (503 overloaded).",
        unit: "percentunit",
        max: 1,
        queries: [
          {
            expr: `${of("penstock_inflight_bytes")} / ${of("penstock_inflight_bytes_max")}`,
            legend: "{{instance}}",
          },
        ],
        thresholds: [{ from: 0.8, color: "red" }],
      }),
      timeSeries({
        title: "Event-loop delay",
        description: "Since the previous scrape; the worst of several workers.",
        unit: "s",
        queries: [
          {
            expr: `max by (stat) (${of("penstock_event_loop_delay_seconds")})`,
            legend: "{{stat}}",
          },
        ],
        thresholds: [{ from: 0.1, color: "red" }],
      }),
      timeSeries({
        title: "File descriptors",
        description: "Share of the limit of the process. Nearly all are connections of clients.",
        unit: "percentunit",
        max: 1,
        queries: [
          {
            expr: `${of("process_open_fds")} / ${of("process_max_fds")}`,
            legend: "{{instance}} {{worker}}",
          },
        ],
        thresholds: [{ from: 0.8, color: "red" }],
      }),
      timeSeries({
        title: "Garbage collection",
        description: "Seconds per second that a process spends on it.",
        unit: "percentunit",
        queries: [
          {
            expr: `sum by (instance, worker) (${rate("nodejs_gc_duration_seconds_sum")})`,
            legend: "{{instance}} {{worker}}",
          },
        ],
      }),
    ],
  },
  {
    title: "Processes",
    panels: [
      timeSeries({
        title: "Workers",
        description: "Processes that accept requests.",
        unit: "short",
        width: 6,
        queries: [{ expr: of("penstock_workers"), legend: "{{instance}}" }],
      }),
      timeSeries({
        title: "Versions",
        description: "Gateways, effects and sinks that Prometheus scrapes, by their version.",
        unit: "short",
        width: 6,
        queries: [
          { expr: "count by (job, version) (penstock_build_info)", legend: "{{job}} {{version}}" },
        ],
      }),
      timeSeries({
        title: "Starts",
        description:
          "Restarts of dead workers, and starts of whole gateways, in the interval before each point.",
        unit: "short",
        width: 6,
        queries: [
          {
            expr: `increase(${of("penstock_worker_restarts_total")}[$__rate_interval])`,
            legend: "worker of {{instance}}",
          },
          {
            expr: `changes(${of("process_start_time_seconds", 'worker=~"|supervisor"')}[$__rate_interval])`,
            legend: "{{instance}}",
          },
        ],
      }),
      timeSeries({
        title: "Projects",
        description: "Projects known to a gateway. All gateways should have the same number.",
        unit: "short",
        width: 6,
        queries: [{ expr: of("penstock_projects"), legend: "{{instance}}" }],
      }),
      stat({
        title: "Certificate expires",
        description: "The earliest of the selected gateways; empty without TLS.",
        unit: "dateTimeFromNow",
        width: 6,
        height: 8,
        queries: [
          { expr: `min(${of("penstock_tls_certificate_expiry_seconds")} > 0) * 1000`, legend: "" },
        ],
        baseColor: "text",
      }),
    ],
  },
];

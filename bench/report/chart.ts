// The comparison as a picture: events per second of each server, one panel per load and sync
// setting. Apache ECharts renders it to SVG text without a browser.

import { BarChart } from "echarts/charts";
import { GridComponent, TitleComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { type Variant, variantTitles } from "../harness/variants.ts";
import { medianAt, type Row } from "./rows.ts";

use([BarChart, GridComponent, TitleComponent, SVGRenderer]);

interface Panel {
  readonly title: string;
  readonly bars: readonly {
    readonly name: string;
    readonly value: number;
    readonly color: string;
  }[];
}

const colors: Readonly<Record<Variant, string>> = {
  penstock: "#0f766e",
  fastify: "#94a3b8",
  "uws-json": "#cbd5e1",
  ceiling: "#e2e8f0",
};
const loads = ["single events, 128 connections", "batches of 100", "batches of 19 MB"];
const syncTitles = { always: "on disk before 200", lazy: "lazy sync" } as const;
const chartTitle = "Events acknowledged a second";
const width = 860;
const panelHeight = 170;
const columns = 2;
const textColor = "#334155";
const titleHeight = 30;
const labelWidth = 116;
const valueWidth = 64;

const shortTitles: Readonly<Record<Variant, string>> = {
  penstock: "Penstock",
  fastify: "Fastify baseline",
  "uws-json": "uWS + js.publish",
  ceiling: "ceiling (discards)",
};

function panelsOf(rows: readonly Row[]): Panel[] {
  return loads.flatMap((scenario) =>
    (["always", "lazy"] as const).map((sync) => ({
      title: `${scenario}, ${syncTitles[sync]}`,
      bars: (Object.keys(variantTitles) as Variant[])
        // For batches the ceiling reads bytes but no events, so it is not comparable.
        .filter((variant) => variant !== "ceiling" || scenario === loads[0])
        .map((variant) => ({
          name: shortTitles[variant],
          value: medianAt(
            rows,
            { group: "throughput", scenario, variant, sync: variant === "ceiling" ? "" : sync },
            "eventsPerSecond",
          ),
          color: colors[variant],
        }))
        .filter(({ value }) => Number.isFinite(value)),
    })),
  );
}

export function comparisonSvg(rows: readonly Row[], caption: string): string | undefined {
  const panels = panelsOf(rows).filter(({ bars }) => bars.length > 1);
  if (panels.length === 0) return undefined;
  const height = Math.ceil(panels.length / columns) * panelHeight + titleHeight * 2;
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height });
  const left = (index: number) => (index % columns) * (width / columns);
  const top = (index: number) => Math.floor(index / columns) * panelHeight + titleHeight * 1.5;
  chart.setOption({
    animation: false,
    backgroundColor: "#ffffff",
    title: [
      { text: chartTitle, left: 8, top: 4, textStyle: { fontSize: 15, color: textColor } },
      {
        text: caption,
        left: 8,
        bottom: 4,
        textStyle: { fontSize: 10, fontWeight: "normal", color: "#64748b" },
      },
      ...panels.map(({ title }, index) => ({
        text: title,
        left: left(index) + 8,
        top: top(index),
        textStyle: { fontSize: 12, fontWeight: "normal", color: textColor },
      })),
    ],
    grid: panels.map((_, index) => ({
      left: left(index) + labelWidth,
      top: top(index) + titleHeight - 6,
      width: width / columns - labelWidth - valueWidth,
      height: panelHeight - titleHeight - 18,
    })),
    xAxis: panels.map((_, gridIndex) => ({ gridIndex, type: "value", show: false })),
    yAxis: panels.map(({ bars }, gridIndex) => ({
      gridIndex,
      type: "category",
      inverse: true,
      data: bars.map(({ name }) => name),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { color: textColor, fontSize: 11 },
    })),
    series: panels.map(({ bars }, index) => ({
      type: "bar",
      // Excludes the styles for a mouse from the SVG text.
      silent: true,
      emphasis: { disabled: true },
      xAxisIndex: index,
      yAxisIndex: index,
      barMaxWidth: 20,
      data: bars.map(({ value, color }) => ({ value: Math.round(value), itemStyle: { color } })),
      label: {
        show: true,
        position: "right",
        color: textColor,
        fontSize: 11,
        formatter: ({ value }: { value?: unknown }) => Number(value).toLocaleString("en"),
      },
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg.replace(/^<svg[^>]*>/, (tag) => `${tag}\n<title>${chartTitle}</title>`);
}

// Builds panels for dashboard.ts: Grafana's JSON for time series, single values and rows, and their
// positions on the grid. Independent of metrics.

const gridWidth = 24;
/** The data source selected at the top of the dashboard. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana replaces it
export const datasource = { type: "prometheus", uid: "${datasource}" } as const;

export interface Query {
  readonly expr: string;
  /** `{{label}}` is replaced by the value of a label. */
  readonly legend: string;
}

/** The value from which the colour changes. Time series draw it as a line. */
interface Threshold {
  readonly from: number;
  readonly color: "green" | "orange" | "red";
}

/**
 * Units use Grafana's names: rates of events and requests are `ops`, rates of bytes `Bps`, shares
 * `percentunit`.
 */
type Unit = "ops" | "s" | "m" | "bytes" | "Bps" | "percentunit" | "short" | "dateTimeFromNow";

interface PanelOptions {
  readonly title: string;
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  readonly thresholds?: readonly Threshold[];
  /** Colour below the first threshold. */
  readonly baseColor?: "green" | "red" | "text";
  /** Width, of 24; `height` in grid units. */
  readonly width?: number;
  readonly height?: number;
  readonly stacked?: boolean;
  readonly max?: number;
  readonly decimals?: number;
}

interface Panel extends PanelOptions {
  readonly type: "timeseries" | "stat";
  readonly width: number;
  readonly height: number;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export function timeSeries(options: PanelOptions): Panel {
  return { ...options, type: "timeseries", width: options.width ?? 8, height: options.height ?? 8 };
}

export function stat(options: PanelOptions): Panel {
  return { ...options, type: "stat", width: options.width ?? 3, height: options.height ?? 4 };
}

/**
 * Returns the panels in Grafana's format: each row below the previous one, its panels from left to
 * right. Ids follow the positions.
 */
export function layOut(rows: readonly Row[]): object[] {
  const placed: object[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    placed.push({
      id: placed.length + 1,
      type: "row",
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: gridWidth, h: 1 },
      panels: [],
    });
    y += 1;
    let x = 0;
    let lineHeight = 0;
    for (const panel of panels) {
      if (x + panel.width > gridWidth) {
        x = 0;
        y += lineHeight;
        lineHeight = 0;
      }
      placed.push(panelJson(panel, placed.length + 1, { x, y, w: panel.width, h: panel.height }));
      x += panel.width;
      lineHeight = Math.max(lineHeight, panel.height);
    }
    y += lineHeight;
  }
  return placed;
}

function panelJson(panel: Panel, id: number, gridPos: object): object {
  const {
    type,
    title,
    description,
    unit,
    queries,
    thresholds = [],
    baseColor = "green",
    max,
    decimals,
  } = panel;
  return {
    id,
    type,
    title,
    description,
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(max === undefined ? {} : { max }),
        ...(decimals === undefined ? {} : { decimals }),
        thresholds: {
          mode: "absolute",
          steps: [
            { color: baseColor, value: null },
            ...thresholds.map(({ from, color }) => ({ color, value: from })),
          ],
        },
        ...(type === "timeseries"
          ? { color: { mode: "palette-classic" }, custom: lineStyle(panel) }
          : {}),
      },
      overrides: [],
    },
    options: type === "timeseries" ? timeSeriesOptions : statOptions,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      editorMode: "code",
      expr,
      legendFormat: legend,
      range: type === "timeseries",
      instant: type === "stat",
    })),
  };
}

function lineStyle({ stacked = false, thresholds = [] }: Panel): object {
  return {
    drawStyle: "line",
    lineWidth: 1,
    fillOpacity: stacked ? 30 : 5,
    showPoints: "never",
    spanNulls: false,
    stacking: { mode: stacked ? "normal" : "none", group: "A" },
    thresholdsStyle: { mode: thresholds.length > 0 ? "line" : "off" },
  };
}

const timeSeriesOptions = {
  legend: { displayMode: "list", placement: "bottom", showLegend: true, calcs: [] },
  tooltip: { mode: "multi", sort: "desc" },
};

const statOptions = {
  colorMode: "value",
  graphMode: "none",
  justifyMode: "auto",
  orientation: "auto",
  reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
  textMode: "auto",
};

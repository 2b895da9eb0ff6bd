import type { EffectsScenario } from "./scenario.ts";
import { effectsBacklog } from "./scenarios/effects-backlog.ts";
import { effectsKilled } from "./scenarios/effects-killed.ts";
import { sinkKilled } from "./scenarios/sink-killed.ts";
import { sinkPosthogKilled } from "./scenarios/sink-posthog-killed.ts";

export const effectsScenarios: readonly EffectsScenario[] = [
  effectsKilled,
  effectsBacklog,
  sinkKilled,
  sinkPosthogKilled,
];

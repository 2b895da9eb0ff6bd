// Changes of a stream that its reader did not cause. Tables and metric labels have these names.

export const incidentKinds = [
  "stream_made_anew",
  "tail_lost",
  "expired_unread",
  "begun_late",
  "place_unknown",
  "copy_accepted",
  "unknown_schema",
] as const;

export type IncidentKind = (typeof incidentKinds)[number];

// The kinds of incidents that readers report. They are stored in tables and used as metric labels.

/** Kinds of changes of a stream that its reader did not cause. */
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

// The kinds of incidents that reading makes, listed once: they stand in tables and metrics.

/** What happened to a stream that its reader had not brought about. */
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

// The projects that a database has something of, in the SQL that both stores understand. Every
// event that is applied is counted in usage_daily, so its index knows them all.

/** Projects that are told at most. */
const projectsMax = 1_000;

/** Goes from one project to the next, past the rows of each. */
export const projectsSql = `WITH RECURSIVE found (project_id) AS (
    SELECT min(project_id) FROM usage_daily
    UNION ALL
    SELECT (
      SELECT min(u.project_id) FROM usage_daily AS u WHERE u.project_id > found.project_id
    ) FROM found WHERE found.project_id IS NOT NULL
  )
  SELECT project_id FROM found WHERE project_id IS NOT NULL LIMIT ${projectsMax}`;

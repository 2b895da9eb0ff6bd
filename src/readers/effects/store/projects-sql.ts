// The projects with data in a database, in SQL for both stores. Every applied event is counted in
// usage_daily, so its index has all projects.

/** Maximum number of returned projects. */
const projectsMax = 1_000;

/** Jumps from one project to the next, past the rows of each. */
export const projectsSql = `WITH RECURSIVE found (project_id) AS (
    SELECT min(project_id) FROM usage_daily
    UNION ALL
    SELECT (
      SELECT min(u.project_id) FROM usage_daily AS u WHERE u.project_id > found.project_id
    ) FROM found WHERE found.project_id IS NOT NULL
  )
  SELECT project_id FROM found WHERE project_id IS NOT NULL LIMIT ${projectsMax}`;

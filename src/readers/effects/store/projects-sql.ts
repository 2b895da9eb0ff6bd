const projectsMax = 1_000;

/** Jumps from one project to the next instead of reading all rows. */
export const projectsSql = `WITH RECURSIVE found (project_id) AS (
    SELECT min(project_id) FROM usage_daily
    UNION ALL
    SELECT (
      SELECT min(u.project_id) FROM usage_daily AS u WHERE u.project_id > found.project_id
    ) FROM found WHERE found.project_id IS NOT NULL
  )
  SELECT project_id FROM found WHERE project_id IS NOT NULL LIMIT ${projectsMax}`;

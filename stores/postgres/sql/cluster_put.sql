INSERT INTO {cluster} AS c (key, revision, value)
SELECT $1::text, $2::int8 + 1, $3::bytea WHERE $2 = 0 OR EXISTS (SELECT 1 FROM {cluster} WHERE key = $1)
ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value
WHERE c.revision = excluded.revision - 1
RETURNING revision

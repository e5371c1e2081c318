-- No revision is given twice, also after the database went back.
INSERT INTO {cluster} AS c (key, revision, value)
SELECT $1::text, greatest($2::int8 + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::int8), $3::bytea
WHERE $2 = 0 OR EXISTS (SELECT 1 FROM {cluster} WHERE key = $1)
ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value
WHERE c.revision = $2
RETURNING revision

-- The tables whose dead rows are worth a vacuum: many, and not few beside the living ones, since all of a table's indexes
-- are gone through to get rid of them.
SELECT t.name
FROM unnest($1::text[]) AS t (name)
JOIN pg_stat_all_tables s ON s.relid = to_regclass(t.name)
WHERE s.n_dead_tup > 50000 + s.n_live_tup / 5

-- The index does not know the tables: so many members are looked at, and the last line says how many, and the last.
WITH seen AS MATERIALIZED (
    SELECT seq FROM {names} WHERE space = $2::int4 AND grp = $4::text AND seq >= $5::int8
    ORDER BY seq LIMIT $8
)
(SELECT 0::int8, seq, at, tbl, state, topic, id, queue, grp, CASE WHEN $7 THEN body END
FROM (
    SELECT r.seq, r.at, r.tbl, r.state, n.topic, n.id, n.queue, n.grp, n.body,
        sum(octet_length(n.body)) OVER (ORDER BY s.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM seen s
    CROSS JOIN LATERAL (SELECT * FROM {rows} WHERE shard = $1::int4 AND seq >= s.seq ORDER BY seq LIMIT 1) r
    CROSS JOIN LATERAL (SELECT * FROM {names} WHERE shard = $1 AND seq = s.seq LIMIT 1) n
    WHERE r.seq = s.seq AND r.tbl = $3::int2
    ORDER BY s.seq LIMIT $6
) page
WHERE NOT $7 OR coalesce(before, 0) < 8388608
ORDER BY seq)
UNION ALL
(SELECT (SELECT count(*) FROM seen), seq, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM seen ORDER BY seq DESC LIMIT 1)

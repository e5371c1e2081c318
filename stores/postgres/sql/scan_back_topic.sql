-- There is no index by topic: so many rows are looked at, and the last line says how many there were, and the last.
WITH seen AS MATERIALIZED (
    SELECT seq, at, state FROM {rows}
    WHERE shard = $1::int4 AND tbl = $2::int2 AND (at, seq) < ($3::int8, $4::int8) AND at >= $5::int8
    ORDER BY at DESC, seq DESC LIMIT $9
)
(SELECT 0::int8, seq, at, $2, state, topic, id, queue, grp, CASE WHEN $7 THEN body END
FROM (
    SELECT r.seq, r.at, r.state, n.topic, n.id, n.queue, n.grp, n.body,
        sum(octet_length(n.body)) OVER (ORDER BY r.at DESC, r.seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM seen r
    CROSS JOIN LATERAL (SELECT * FROM {names} WHERE shard = $1 AND seq = r.seq LIMIT 1) n
    WHERE n.topic = $8::text
    ORDER BY r.at DESC, r.seq DESC LIMIT $6
) page
WHERE NOT $7 OR coalesce(before, 0) < 8388608
ORDER BY at DESC, seq DESC)
UNION ALL
(SELECT (SELECT count(*) FROM seen), seq, at, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM seen ORDER BY at, seq LIMIT 1)

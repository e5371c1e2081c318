SELECT p.place, r.seq, r.at, r.tbl, r.state, n.topic, n.id, n.queue, n.grp, CASE WHEN $3 THEN n.body END
FROM unnest($2::int8[]) WITH ORDINALITY AS p (seq, place)
CROSS JOIN LATERAL (SELECT * FROM {rows} WHERE shard = $1::int4 AND seq >= p.seq ORDER BY seq LIMIT 1) r
CROSS JOIN LATERAL (SELECT * FROM {names} WHERE shard = $1 AND seq = p.seq LIMIT 1) n
WHERE r.seq = p.seq AND r.tbl < 4

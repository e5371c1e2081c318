SELECT p.place, r.seq, r.at, r.tbl, r.state, n.topic, n.id, n.queue, n.grp, CASE WHEN $4 THEN n.body END
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS p (at, seq, place)
CROSS JOIN LATERAL (SELECT * FROM {rows} WHERE shard = $1::int4 AND tbl = 1 AND at = p.at AND seq = p.seq LIMIT 1) r
CROSS JOIN LATERAL (SELECT * FROM {names} WHERE shard = $1 AND seq = p.seq LIMIT 1) n

SELECT k.place, r.seq, r.at, r.tbl, r.state, n.topic, n.id, n.queue, n.grp, CASE WHEN $6 THEN n.body END
FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS k (topic, id, queue, place)
CROSS JOIN LATERAL (
    SELECT * FROM {names} WHERE space = $2::int4 AND id = k.id AND topic = k.topic AND queue = k.queue LIMIT 1
) n
CROSS JOIN LATERAL (SELECT * FROM {rows} WHERE shard = $1::int4 AND seq >= n.seq ORDER BY seq LIMIT 1) r
WHERE r.seq = n.seq

UPDATE {shards} s
SET fence = greatest(s.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::int8),
    node = $3::text, incarnation = $4::int8
FROM unnest($1::int4[], $2::int8[]) AS w (shard, seen)
WHERE s.shard = w.shard AND s.fence = w.seen
RETURNING s.shard, s.fence, s.serial

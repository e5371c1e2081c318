UPDATE {shards}
SET fence = greatest(fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::int8),
    node = $3::text, incarnation = $4::int8
WHERE shard = $1::int4 AND fence = $2::int8 AND fence > 0
RETURNING fence

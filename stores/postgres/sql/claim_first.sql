INSERT INTO {shards} (shard, fence, serial)
SELECT w.shard, 0, 0 FROM unnest($1::int4[], $2::int8[]) AS w (shard, seen) WHERE w.seen = 0
ON CONFLICT (shard) DO NOTHING

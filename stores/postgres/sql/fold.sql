-- A snapshot takes the place of the one that it was made from, and of the deltas that it has taken in.
WITH put AS (
    INSERT INTO {tallies} AS t (shard, serial, counts) VALUES ($1::int4, $3::int8, $4::bytea)
    ON CONFLICT (shard) DO UPDATE SET serial = excluded.serial, counts = excluded.counts WHERE t.serial = $2::int8
    RETURNING shard, serial
)
DELETE FROM {deltas} d USING put WHERE d.shard = put.shard AND d.serial <= put.serial

SELECT shard, fence, serial FROM {shards} WHERE shard = ANY ($1::int4[])

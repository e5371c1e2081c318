-- A shard with the fence zero is one whose first claim was cut short.
SELECT shard, fence, node, incarnation FROM {shards} WHERE fence > 0 ORDER BY shard

-- The snapshot, and what came after it: a delta that the snapshot has taken in may still be there for a moment.
WITH snapshot AS (SELECT serial, counts FROM {tallies} WHERE shard = $1::int4)
SELECT serial, counts FROM snapshot
UNION ALL
(SELECT serial, counts FROM {deltas}
WHERE shard = $1 AND serial > coalesce((SELECT serial FROM snapshot), -1)
ORDER BY serial)

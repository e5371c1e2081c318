-- Batches of different shards, as one: each happens if its shard is at the fence and the serial before it.
--
-- What a commit does not need is left out of its statement, since a part that finds nothing to do takes its time too: the lines
-- between `-- if` and `-- end` stand only in statements of commits that have such changes.
--
-- What is removed goes before what is inserted, since a new row may have the key or the number of an old one: the
-- inserts ask for the count of the removed, and the asking is what orders them.
--
-- Rows are looked up one by one and then changed where they were found (ctid). Joined directly, a planner that believes
-- the table to be empty would rather go through all of it, and keep to that when it has millions of rows.
WITH own AS (
    UPDATE {shards} s SET serial = w.serial
    FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int4[], $5::int4[], $6::bytea[])
        AS w (shard, fence, serial, updates, removals, counts)
    WHERE s.shard = w.shard AND s.fence = w.fence AND s.serial = w.serial - 1
    RETURNING s.shard, w.serial, w.updates, w.removals, w.counts
), counted AS (
    INSERT INTO {deltas} (shard, serial, counts)
    SELECT shard, serial, counts FROM own WHERE counts IS NOT NULL
-- if removals
), removed AS (
    DELETE FROM {rows} r
    USING unnest($7::int4[], $8::int8[], $9::int2[], $10::int8[]) AS d (shard, seq, tbl, at)
    CROSS JOIN LATERAL (
        SELECT ctid FROM {rows} WHERE shard = d.shard AND tbl = d.tbl AND at = d.at AND seq = d.seq LIMIT 1
    ) place
    WHERE r.ctid = place.ctid AND d.shard = ANY (ARRAY(SELECT shard FROM own))
    RETURNING 1
), unnamed AS (
    DELETE FROM {names} n
    USING unnest($7::int4[], $8::int8[]) AS d (shard, seq)
    CROSS JOIN LATERAL (SELECT ctid FROM {names} WHERE shard = d.shard AND seq = d.seq LIMIT 1) place
    WHERE n.ctid = place.ctid AND d.shard = ANY (ARRAY(SELECT shard FROM own))
    RETURNING 1
-- end
-- if updates
), updated AS (
    UPDATE {rows} r SET tbl = u.tbl, at = u.at, state = u.state
    FROM unnest($11::int4[], $12::int8[], $13::int2[], $14::int8[], $15::int2[], $16::int8[], $17::bytea[])
        AS u (shard, seq, old_tbl, old_at, tbl, at, state)
    CROSS JOIN LATERAL (
        SELECT ctid FROM {rows} WHERE shard = u.shard AND tbl = u.old_tbl AND at = u.old_at AND seq = u.seq LIMIT 1
    ) place
    WHERE r.ctid = place.ctid AND u.shard = ANY (ARRAY(SELECT shard FROM own))
    RETURNING 1
-- end
-- if inserts
), inserted AS (
    INSERT INTO {rows} (shard, seq, tbl, at, state)
    SELECT i.shard, i.seq, i.tbl, i.at, i.state
    FROM unnest($18::int4[], $19::int8[], $20::int2[], $21::int8[], $22::bytea[]) AS i (shard, seq, tbl, at, state)
    WHERE i.shard = ANY (ARRAY(SELECT shard FROM own))
-- if removals
        AND (SELECT count(*) FROM removed) >= 0
-- end
), named AS (
    INSERT INTO {names} (shard, seq, space, topic, id, queue, grp, body)
    SELECT i.shard, i.seq, i.shard * 2 + (i.tbl = 4)::int4, i.topic, i.id, i.queue, i.grp, i.body
    FROM unnest($18::int4[], $19::int8[], $20::int2[], $23::text[], $24::text[], $25::text[], $26::text[], $27::bytea[])
        AS i (shard, seq, tbl, topic, id, queue, grp, body)
    WHERE i.shard = ANY (ARRAY(SELECT shard FROM own))
-- if removals
        AND (SELECT count(*) FROM unnamed) >= 0
-- end
-- end
)
-- A number that is none is the way to fail from within a statement: the message says what was not as it should be.
SELECT shard
-- if removals
    , CASE WHEN ((SELECT count(*) FROM removed), (SELECT count(*) FROM unnamed))
        = ((SELECT sum(removals) FROM own), (SELECT sum(removals) FROM own)) THEN 0
    ELSE format('astray: %s of %s removed', (SELECT count(*) FROM removed), (SELECT sum(removals) FROM own))::int4 END
-- end
-- if updates
    , CASE WHEN (SELECT count(*) FROM updated) = (SELECT sum(updates) FROM own) THEN 0
    ELSE format('astray: %s of %s updated', (SELECT count(*) FROM updated), (SELECT sum(updates) FROM own))::int4 END
-- end
FROM own

WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS micros
), put AS (
    INSERT INTO {nodes} AS n (node, incarnation, address, until)
    SELECT $1::text, $2::int8, $3::text, micros / 1000 + $4::int8 FROM clock
    ON CONFLICT (node) DO UPDATE
    SET incarnation = excluded.incarnation, address = excluded.address, until = excluded.until
    WHERE n.incarnation = excluded.incarnation OR n.until <= (SELECT micros / 1000 FROM clock)
)
SELECT micros FROM clock

WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS micros
), gone AS (
    DELETE FROM {nodes}
    WHERE node = $1::text AND (incarnation = $2::int8 OR until <= (SELECT micros / 1000 FROM clock))
)
SELECT micros FROM clock

-- What the tables take with their indexes and what lies outside of their pages; of those that this user can see.
SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::int8 FROM unnest($1::text[]) AS t (name)

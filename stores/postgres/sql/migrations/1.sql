-- How it stands with each shard: the fence in force, the latest commit, and who has it.
-- Rewritten with every commit, so most of each page is left free for the next versions of its rows.
CREATE TABLE {shards} (
    shard       int4 PRIMARY KEY,
    fence       int8 NOT NULL,
    serial      int8 NOT NULL,
    node        text COLLATE "C",
    incarnation int8
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The nodes that have said that they are there, until when their word counts (milliseconds since 1970).
CREATE TABLE {nodes} (
    node        text COLLATE "C" PRIMARY KEY,
    incarnation int8 NOT NULL,
    address     text NOT NULL,
    until       int8 NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Small things that all nodes share.
CREATE TABLE {cluster} (
    key      text COLLATE "C" PRIMARY KEY,
    revision int8 NOT NULL,
    value    bytea NOT NULL
);

-- What never changes of a row: written once, and removed with it.
-- A key stands once in a space: a shard has one for tasks (twice its number) and one for settings (one more). No index has
-- both shard and space, nor two ways to the same rows: whatever the planner believes of the tables, it has no choice.
CREATE TABLE {names} (
    seq   int8 NOT NULL,
    shard int4 NOT NULL,
    space int4 NOT NULL,
    topic text COLLATE "C" NOT NULL,
    id    text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    grp   text COLLATE "C",
    body  bytea NOT NULL,
    CONSTRAINT {names_pkey} PRIMARY KEY (shard, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
        autovacuum_vacuum_cost_delay = 0);
-- The id alone tells most keys apart.
CREATE UNIQUE INDEX {names_key} ON {names} (id, topic, queue, space);
CREATE INDEX {names_group} ON {names} (space, grp, seq) WHERE grp IS NOT NULL;

-- What changes of a row: narrow, so that a change costs little. `tbl` is the table it stands in: 1 live, 2 dead,
-- 3 history, 4 settings; `at` its time there, in milliseconds since 1970.
CREATE TABLE {rows} (
    seq   int8 NOT NULL,
    at    int8 NOT NULL,
    shard int4 NOT NULL,
    tbl   int2 NOT NULL,
    state bytea NOT NULL,
    CONSTRAINT {rows_pkey} PRIMARY KEY (shard, seq)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX {rows_time} ON {rows} (shard, tbl, at, seq);

-- All counts of a shard as of a commit, and what each commit after it adds.
CREATE TABLE {tallies} (
    shard  int4 PRIMARY KEY,
    serial int8 NOT NULL,
    counts bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE TABLE {deltas} (
    serial int8 NOT NULL,
    shard  int4 NOT NULL,
    counts bytea NOT NULL,
    CONSTRAINT {deltas_pkey} PRIMARY KEY (shard, serial)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

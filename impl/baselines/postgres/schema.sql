-- The advisory lock keeps two clients from creating at once, which one of them
-- would not survive. It ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('holdfast_lock schema', 0));
CREATE SEQUENCE IF NOT EXISTS holdfast_fence;
CREATE TABLE IF NOT EXISTS holdfast_lock (
    name    text PRIMARY KEY,
    token   text NOT NULL,
    fence   bigint NOT NULL,
    expires timestamptz NOT NULL
);

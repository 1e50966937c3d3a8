-- $1 name, $2 token, $3 TTL in microseconds. Gives the fence, or no row where
-- somebody else has the lock. A row that is there is locked before the condition
-- is looked at, and the fence of an update is drawn after that.
INSERT INTO holdfast_lock AS held (name, token, fence, expires)
VALUES ($1, $2, nextval('holdfast_fence'), clock_timestamp() + $3 * interval '1 microsecond')
ON CONFLICT (name) DO UPDATE
SET token = excluded.token,
    fence = nextval('holdfast_fence'),
    expires = clock_timestamp() + $3 * interval '1 microsecond'
WHERE held.expires <= clock_timestamp()
RETURNING fence

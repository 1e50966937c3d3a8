-- $1 name, $2 token, $3 TTL in microseconds.
UPDATE holdfast_lock
SET expires = clock_timestamp() + $3 * interval '1 microsecond'
WHERE name = $1 AND token = $2 AND expires > clock_timestamp()

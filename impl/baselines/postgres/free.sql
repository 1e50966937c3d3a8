-- $1 name, $2 token. The row stays, for the order of the fences.
UPDATE holdfast_lock
SET expires = '-infinity'
WHERE name = $1 AND token = $2 AND expires > clock_timestamp()

-- Deletes the lock if it carries the caller's identifier.
-- KEYS[1]  the lock
-- ARGV[1]  the caller's identifier
-- returns  1 deleted, 0 not the caller's
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0

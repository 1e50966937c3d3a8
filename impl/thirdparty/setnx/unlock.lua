-- Deletes the lock if it has the caller's value.
-- KEYS[1]  the lock
-- ARGV[1]  the caller's value
-- returns  1 deleted, 0 not the caller's
if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("del", KEYS[1])
else
  return 0
end

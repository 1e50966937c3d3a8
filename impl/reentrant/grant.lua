-- Grants the lock, or counts one more hold if it is the caller's.
-- KEYS[1]  the lock: a hash of owner to hold count
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds
-- returns  the caller's hold count, 0 if somebody else holds the lock
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  local count = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return count
end
return 0

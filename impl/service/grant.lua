-- Grants the lock, or counts one more hold if it is the caller's.
-- KEYS[1]  the lock: a hash with the fields identifier and count
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds
-- returns  the hold count, 0 if somebody else holds the lock
local owner = redis.call('HGET', KEYS[1], 'identifier')
if not owner then
  redis.call('HSET', KEYS[1], 'identifier', ARGV[1], 'count', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
if owner == ARGV[1] then
  local count = redis.call('HINCRBY', KEYS[1], 'count', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return count
end
return 0

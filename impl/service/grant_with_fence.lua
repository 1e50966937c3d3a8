-- Grants the lock and counts its fence in one step, or counts one more hold if
-- the lock is the caller's.
-- KEYS[1]  the lock: a hash with the fields identifier and count
-- KEYS[2]  the lock's fence counter, which has no TTL: it must outlive every lease
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds
-- returns  the fence of the lease, 0 if somebody else holds the lock
local owner = redis.call('HGET', KEYS[1], 'identifier')
if not owner then
  local fence = redis.call('INCR', KEYS[2])
  redis.call('HSET', KEYS[1], 'identifier', ARGV[1], 'count', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return fence
end
if owner == ARGV[1] then
  redis.call('HINCRBY', KEYS[1], 'count', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return tonumber(redis.call('GET', KEYS[2]))
end
return 0

-- Grants the lock and counts its fence in one step.
-- KEYS[1]  the lock
-- KEYS[2]  the lock's fence counter, which has no TTL: it must outlive every lease
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds
-- returns  the fence of this grant, 0 if somebody holds the lock
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0

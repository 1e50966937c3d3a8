-- Takes one hold off; deletes the lock with the last one.
-- KEYS[1]  the lock: a hash with the fields identifier and count
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds, for the holds that are left
-- returns  the holds that are left, -1 if the lock is not the caller's
if redis.call('HGET', KEYS[1], 'identifier') ~= ARGV[1] then
  return -1
end
local count = redis.call('HINCRBY', KEYS[1], 'count', -1)
if count > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return count
end
redis.call('DEL', KEYS[1])
return 0

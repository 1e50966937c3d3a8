-- Takes the last hold off; deletes the lock unless Redis counts more holds.
-- KEYS[1]  the lock: a hash of owner to hold count
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds, for the holds that are left
-- returns  1 released, 0 not the caller's
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local count = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
if count > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  redis.call('DEL', KEYS[1])
end
return 1

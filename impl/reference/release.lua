-- Deletes the lock if it carries this acquisition's identifier.
-- KEYS[1]  the lock
-- KEYS[2]  the lock's fence counter
-- ARGV[1]  the acquisition's identifier
-- ARGV[2]  the fence it was granted, 0 if it does not know of a grant
-- returns  1 deleted, 0 this acquisition did not hold the lock any more
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
-- The key may be the work of a granting request that was delayed on its way,
-- and came after the lease had ended and others had held the lock. It has to
-- go, but it was not held in between. The counter has moved on then.
if ARGV[2] ~= '0' and redis.call('GET', KEYS[2]) ~= ARGV[2] then
  return 0
end
return 1

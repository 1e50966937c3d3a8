-- Lengthens the lock if this acquisition holds it.
-- KEYS[1]  the lock
-- ARGV[1]  the acquisition's identifier
-- ARGV[2]  TTL in milliseconds, from now on
-- returns  1 lengthened, 0 not this acquisition's
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0

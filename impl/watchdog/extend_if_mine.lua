-- Lengthens the lock if it carries the caller's identifier.
-- KEYS[1]  the lock
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds, from now on
-- returns  1 lengthened, 0 not the caller's
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0

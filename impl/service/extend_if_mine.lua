-- Lengthens the lock if it is the caller's.
-- KEYS[1]  the lock: a hash with the fields identifier and count
-- ARGV[1]  the caller's identifier
-- ARGV[2]  TTL in milliseconds, from now on
-- returns  1 lengthened, 0 not the caller's
if redis.call('HGET', KEYS[1], 'identifier') == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0

-- Takes one of several holds off, and leaves the TTL alone.
-- KEYS[1]  the lock: a hash of owner to hold count
-- ARGV[1]  the caller's identifier
-- returns  1 taken off, 0 not the caller's
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
return 1

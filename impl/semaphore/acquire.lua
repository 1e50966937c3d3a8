-- Sweeps permits that have expired, and grants one if fewer than N are left.
-- KEYS[1]  the permits: a sorted set of identifiers by their expiry
-- ARGV[1]  the caller's identifier
-- ARGV[2]  how many permits there are
-- ARGV[3]  TTL in milliseconds
-- ARGV[4]  the caller's wall clock in milliseconds, or '' for the server's
-- returns  1 granted, 0 none is free
local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[3])), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1

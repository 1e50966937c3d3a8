-- Grants the lock and counts its fence in one step. Asked again by the holder,
-- it gives the same answer again and changes nothing: a client whose reply was
-- lost may repeat the question.
-- KEYS[1]  the lock
-- KEYS[2]  the lock's fence counter, which has no TTL: it must outlive every lease
-- ARGV[1]  the acquisition's identifier
-- ARGV[2]  TTL in milliseconds
-- returns  the fence of this grant, 0 if somebody else holds the lock
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
  -- Only a grant moves the counter, and there was none since this one.
  local fence = redis.call('GET', KEYS[2])
  if not fence then
    return redis.error_reply('ERR the fence counter is gone')
  end
  return tonumber(fence)
end
if owner then
  return 0
end
-- The counter first: if it fails nothing is granted, and a number that is
-- skipped does no harm.
local fence = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence

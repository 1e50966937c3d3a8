-- Counts one more reader, unless there is a writer.
-- KEYS[1]  the writer
-- KEYS[2]  the readers: a hash with one count
-- ARGV[1]  TTL in milliseconds, of all readers together
-- ARGV[2]  1 to set the TTL, 0 to set it for the first reader only (a mistake)
-- returns  how many readers there are now, 0 if there is a writer
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local count = redis.call('HINCRBY', KEYS[2], 'readers', 1)
if ARGV[2] == '1' or count == 1 then
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
end
return count

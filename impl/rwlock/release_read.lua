-- Takes one reader off, whoever asks: readers have no names.
-- KEYS[1]  the readers: a hash with one count
-- returns  1 taken off, 0 there are no readers
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
if redis.call('HINCRBY', KEYS[1], 'readers', -1) <= 0 then
  redis.call('DEL', KEYS[1])
end
return 1

-- Queues the waiter if it is not in the queue, and grants the lock if the
-- waiter is first and the lock is free.
-- KEYS[1]  the lock
-- KEYS[2]  the queue: a sorted set of waiters by their time of arrival
-- ARGV[1]  the waiter's identifier
-- ARGV[2]  when it came, in microseconds of its own wall clock
-- ARGV[3]  TTL of the lock in milliseconds
-- ARGV[4]  TTL of the queue in milliseconds, which every new waiter sets anew
-- returns  1 granted, 0 keep waiting
if redis.call('ZADD', KEYS[2], 'NX', ARGV[2], ARGV[1]) == 1 then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
if redis.call('ZRANGE', KEYS[2], 0, 0)[1] ~= ARGV[1] then
  return 0
end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[3]) then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
return 1

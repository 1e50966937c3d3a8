-- Reads or writes the protected resource, and decides on the fence.
--
-- KEYS[1]  the resource: a hash with version and highest
-- ARGV[1]  what to add to the version: 1 for a write, 0 for a read
-- ARGV[2]  the caller's fence as twenty digits, or nothing where it is not asked
-- ARGV[3]  the version that the writer has read, or nothing where it is not asked
--
-- Returns {1, version} when it was applied, {0, version, highest} when it was
-- refused, and an error where the key is gone. Fences are compared as texts:
-- Lua's numbers are exact up to 2^53 only.
local highest = redis.call('HGET', KEYS[1], 'highest')
if not highest then
	return redis.error_reply('GONE the key of the run is gone')
end
if ARGV[2] ~= '' then
	if ARGV[2] < highest then
		return {0, redis.call('HGET', KEYS[1], 'version'), highest}
	end
	redis.call('HSET', KEYS[1], 'highest', ARGV[2])
end
if ARGV[3] ~= '' then
	local version = redis.call('HGET', KEYS[1], 'version')
	if ARGV[3] ~= version then
		return {0, version, highest}
	end
end
return {1, tostring(redis.call('HINCRBY', KEYS[1], 'version', ARGV[1]))}

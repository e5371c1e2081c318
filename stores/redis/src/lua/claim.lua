-- Takes a shard if the fence in force is the one that the claimer has seen. KEYS: own. ARGV: the fence seen, node, number.
-- Answers {'granted', fence, serial} or {'outrun', fence}.
local standing = redis.call('HMGET', KEYS[1], 'fence', 'serial')
local fence = standing[1] or '0'
if fence ~= ARGV[1] then return {'outrun', fence} end
local time = redis.call('TIME')
-- Microseconds fit a double exactly until the year 2255. A fence is never granted twice, also after Redis went back.
local new = string.format('%.0f', math.max(tonumber(fence) + 1, tonumber(time[1]) * 1000000 + tonumber(time[2])))
redis.call('HSET', KEYS[1], 'fence', new, 'node', ARGV[2], 'number', ARGV[3])
return {'granted', new, standing[2] or '0'}

-- Gives a shard back. KEYS: own. ARGV: the fence, and node and number of who is to have it next, or neither.
-- Answers {'released', new fence} or {'stands', fence, serial}.
local standing = redis.call('HMGET', KEYS[1], 'fence', 'serial')
local fence = standing[1] or '0'
if fence ~= ARGV[1] or fence == '0' then return {'stands', fence, standing[2] or '0'} end
local time = redis.call('TIME')
local new = string.format('%.0f', math.max(tonumber(fence) + 1, tonumber(time[1]) * 1000000 + tonumber(time[2])))
if ARGV[2] then
  redis.call('HSET', KEYS[1], 'fence', new, 'node', ARGV[2], 'number', ARGV[3])
else
  redis.call('HSET', KEYS[1], 'fence', new)
  redis.call('HDEL', KEYS[1], 'node', 'number')
end
return {'released', new}

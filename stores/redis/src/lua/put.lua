-- Writes an entry of the cluster if it is at the revision seen. KEYS: revisions, entries. ARGV: key, revision seen, value.
-- Answers the new revision, or {the current one}.
local current = redis.call('HGET', KEYS[1], ARGV[1]) or '0'
if current ~= ARGV[2] then return {current} end
local time = redis.call('TIME')
-- As with fences: no revision is given twice, also after Redis went back.
local new = string.format('%.0f', math.max(tonumber(current) + 1, tonumber(time[1]) * 1000000 + tonumber(time[2])))
redis.call('HSET', KEYS[1], ARGV[1], new)
-- Together, so that one look sees both.
redis.call('HSET', KEYS[2], ARGV[1], new .. ' ' .. ARGV[3])
return new

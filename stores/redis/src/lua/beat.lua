-- Notes that a node is there, unless another life of it is. KEYS: nodes, shards, revisions.
-- ARGV: node, its number, its lease in milliseconds, its address.
-- Answers {seconds, micros, nodes, shards, revisions}; a node is 'number until address'.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local before = redis.call('HGET', KEYS[1], ARGV[1])
local counts = true
if before then
  local number, till = string.match(before, '^(%d+) (%d+) ')
  counts = number == ARGV[2] or tonumber(till) <= now
end
if counts and ARGV[3] == '0' then
  redis.call('HDEL', KEYS[1], ARGV[1])
elseif counts then
  local till = string.format('%.0f', now + tonumber(ARGV[3]))
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. till .. ' ' .. ARGV[4])
end
return {
  time[1], time[2], redis.call('HGETALL', KEYS[1]), redis.call('SMEMBERS', KEYS[2]), redis.call('HGETALL', KEYS[3])
}

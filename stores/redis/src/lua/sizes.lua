-- How many rows the parts of a shard have, at one moment.
-- Answers {serial, live, dead, history, settings, names, rows, bodies, groups}.
local own, live, dead, history, settings, names, rows, bodies, groups, tallies = unpack(KEYS)
return {
  redis.call('HGET', own, 'serial') or '0',
  redis.call('ZCARD', live), redis.call('ZCARD', dead), redis.call('ZCARD', history), redis.call('ZCARD', settings),
  -- One field is not a name: see commit.lua.
  redis.call('HLEN', names) - redis.call('HEXISTS', names, ''),
  redis.call('HLEN', rows), redis.call('HLEN', bodies), redis.call('ZCARD', groups)
}

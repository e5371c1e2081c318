-- Makes one batch of a shard happen, wholly or not at all. A script that fails half-way is not undone, so everything is
-- looked at before the first write.
--
-- ARGV: fence, serial, whether to write even if the batch is there already ('1': WAIT is only promised to know of what its
--       own connection has written), and the batch, which is left out if it changes nothing.
-- Answers {'done'}, {'stands', fence, serial} if the shard stands elsewhere, or {'astray', what, which}.
local own, live, dead, history, settings, names, rows, bodies, groups, tallies = unpack(KEYS)

local standing = redis.call('HMGET', own, 'fence', 'serial')
local fence, latest = standing[1] or '0', tonumber(standing[2] or '0')
local serial = tonumber(ARGV[2])
if fence ~= ARGV[1] or fence == '0' then
  return {'stands', fence, tostring(standing[2] or '0')}
end
if not ARGV[4] then
  if serial > latest then return {'stands', fence, tostring(standing[2] or '0')} end
  return {'done'}
end
if serial <= latest then
  if ARGV[3] == '1' then redis.call('HSET', own, 'serial', standing[2]) end
  return {'done'}
end
if serial > latest + 1 then
  return {'stands', fence, tostring(standing[2] or '0')}
end

-- Lua passes at most some 8,000 arguments.
local MOST = 4000
local function get(key, fields)
  if #fields == 0 then return {} end
  if #fields <= MOST then return redis.call('HMGET', key, unpack(fields)) end
  local all = {}
  for from = 1, #fields, MOST do
    for _, value in ipairs(redis.call('HMGET', key, unpack(fields, from, math.min(from + MOST - 1, #fields)))) do
      all[#all + 1] = value
    end
  end
  return all
end

local function put(key, pairs)
  for from = 1, #pairs, MOST do redis.call('HSET', key, unpack(pairs, from, math.min(from + MOST - 1, #pairs))) end
end
local function drop(key, fields)
  for from = 1, #fields, MOST do redis.call('HDEL', key, unpack(fields, from, math.min(from + MOST - 1, #fields))) end
end

local numbers, heads, labels, new_heads, new_states, fresh, keys, holders, commands, counted, deltas =
  unpack(cmsgpack.unpack(ARGV[4]))
local sub, byte = string.sub, string.byte

-- Rows that change stand where the writer says: table and time in the head, key and group in the label.
local changed, bodiless = {}, {}
for i, row in ipairs(get(rows, numbers)) do
  local label = labels[i]
  if not row then return {'astray', 'number', i} end
  if sub(row, 1, 9) ~= heads[i] or sub(row, 14, 13 + #label) ~= label then return {'astray', 'place', i} end
  local head = new_heads[i]
  if head then
    -- What never changes is kept as it is: label, and the body if it is short.
    local a, b, c, d = byte(row, 10, 13)
    local body = a < 128 and ((a * 256 + b) * 256 + c) * 256 + d or 0
    changed[2 * i - 1] = numbers[i]
    changed[2 * i] = head .. sub(row, 10, 13 + #label + body) .. new_states[i]
  elseif byte(row, 10) >= 128 then
    -- It goes, and its body lies apart.
    bodiless[#bodiless + 1] = numbers[i]
  end
end
for i, row in ipairs(get(rows, fresh)) do
  if row then return {'astray', 'taken', i} end
end
for i, number in ipairs(get(names, keys)) do
  if (number or '') ~= holders[i] then return {'astray', 'key', i} end
end

-- One read and one write for all counts: a command for each costs more than the rest of the batch.
local counts, zeros = {}, {}
for i, count in ipairs(get(tallies, counted)) do
  local tally, delta = counted[i], deltas[i]
  if #delta > 15 or #(count or '') > 15 then
    -- Too large for Lua to be exact. If Redis refuses the sum, it is the first write that fails.
    if redis.call('HINCRBY', tallies, tally, delta) == 0 then zeros[#zeros + 1] = tally end
  else
    local sum = tonumber(count or '0') + tonumber(delta)
    if sum ~= 0 then
      counts[#counts + 1] = tally
      counts[#counts + 1] = string.format('%.0f', sum)
    elseif count then
      zeros[#zeros + 1] = tally
    end
  end
end
put(tallies, counts)
drop(tallies, zeros)
if latest == 0 then
  -- Redis keeps hashes of few and short fields packed, and searches them from the front. One long field keeps it from that.
  local unpacked = 'This long value keeps Redis from packing the hash, in which every search would begin at the front.'
  put(names, {'', unpacked})
  put(tallies, {'', unpacked})
end
drop(bodies, bodiless)
for _, command in ipairs(commands) do
  redis.call(command[1], KEYS[command[2]], unpack(command, 3))
end
put(rows, changed)
redis.call('HSET', own, 'serial', ARGV[2])
return {'done'}

-- Reads what is wanted of a shard. Redis does nothing else meanwhile, so one call looks at so many rows and gives so many
-- bytes; where it stopped, the next call goes on.
--
-- ARGV: the fence under which is read, or nothing; how many rows and bytes; the wants.
-- Answers {fence, serial, answer, ...}; nothing but the first two if another fence is in force.
local own, live, dead, history, settings, names, rows, bodies, groups, tallies = unpack(KEYS)

local standing = redis.call('HMGET', own, 'fence', 'serial')
local answers = {standing[1] or '0', standing[2] or '0'}
if ARGV[1] ~= '' and ARGV[1] ~= answers[1] then
  return answers
end

local rows_left, bytes_left = tonumber(ARGV[2]), tonumber(ARGV[3])
local sub, byte = string.sub, string.byte
local CHUNK = 256

-- The length of a row's body, and whether it lies apart from the row. What is too short to say is no row, and whoever
-- reads it says so.
local function body_of(row)
  local a, b, c, d = byte(row, 10, 13)
  if not d then return 0, false end
  local apart = a >= 128
  if apart then a = a - 128 end
  return ((a * 256 + b) * 256 + c) * 256 + d, apart
end

-- Adds the rows with these numbers to the page {numbers, rows, bodies that lie apart}, as far as they may be read, and
-- says how many of the numbers were looked at, and the last row of these. `false` stands for what is not there.
local function take(page, numbers, with_bodies, is_wanted, limit)
  if #numbers == 0 then return 0 end
  local found = redis.call('HMGET', rows, unpack(numbers))
  local looked, last, apart = 0, nil, {}
  for i, row in ipairs(found) do
    if rows_left <= 0 or bytes_left <= 0 or #page[1] >= limit then break end
    looked, last = i, row
    rows_left = rows_left - 1
    if not row or not is_wanted or is_wanted(row) then
      page[1][#page[1] + 1] = numbers[i]
      page[2][#page[2] + 1] = row
      if row then
        bytes_left = bytes_left - #row
        if with_bodies then
          local length, is_apart = body_of(row)
          if is_apart then
            apart[#apart + 1] = numbers[i]
            bytes_left = bytes_left - length
          end
        end
      end
    end
  end
  if #apart > 0 then
    for _, body in ipairs(redis.call('HMGET', bodies, unpack(apart))) do page[3][#page[3] + 1] = body end
  end
  return looked, last
end

-- {kind, with bodies, numbers}: how many of them were looked at, and the page.
local function each(with_bodies, numbers)
  local page, done = {{}, {}, {}}, 0
  while done < #numbers and rows_left > 0 and bytes_left > 0 do
    local chunk = {unpack(numbers, done + 1, math.min(done + CHUNK, #numbers))}
    local looked = take(page, chunk, with_bodies, nil, math.huge)
    done = done + looked
    if looked < #chunk then break end
  end
  return {done, page[1], page[2], page[3]}
end

local function by_keys(with_bodies, keys)
  local numbers = {}
  local count = math.min(#keys, rows_left)
  for from = 1, count, CHUNK do
    for _, number in ipairs(redis.call('HMGET', names, unpack(keys, from, math.min(from + CHUNK - 1, count)))) do
      -- No row has an empty number.
      numbers[#numbers + 1] = number or ''
    end
  end
  return each(with_bodies, numbers)
end

-- How many rows of a table stand before a position. At equal scores members stand in the order of their bytes, which is
-- that of the numbers; Lua itself would compare them by the rules of some language.
local function rank(key, at, number)
  local first = redis.call('ZCOUNT', key, '-inf', '(' .. at)
  local high, low = struct.unpack('>I4I4', number)
  if high == 0 and low == 0 then return first end
  local past = first + redis.call('ZCOUNT', key, at, at)
  while first < past do
    local middle = math.floor((first + past) / 2)
    local h, l = struct.unpack('>I4I4', redis.call('ZRANGE', key, middle, middle)[1])
    if h < high or (h == high and l < low) then first = middle + 1 else past = middle end
  end
  return first
end

local function of_topic(topic)
  if topic == '' then return nil end
  local length = #topic
  return function(row) return byte(row, 16) == length and sub(row, 19, 18 + length) == topic end
end

local function reversed(list)
  local result = {}
  for i = #list, 1, -1 do result[#result + 1] = list[i] end
  return result
end

-- {kind, with bodies, table, at, number, other end, topic, limit}: the page, and the position of the last row looked at
-- if there are more.
local function span(with_bodies, is_back, table, at, number, other, topic, limit)
  local key = KEYS[table + 1]
  local here = rank(key, at, number)
  local there = redis.call('ZCOUNT', key, '-inf', '(' .. other)
  local left = is_back and here - there or there - here
  local page, is_wanted = {{}, {}, {}}, of_topic(topic)
  local more
  while left > 0 and #page[1] < limit and rows_left > 0 and bytes_left > 0 do
    local size = math.min(left, CHUNK, rows_left)
    if not is_wanted then size = math.min(size, limit - #page[1]) end
    local chunk
    if is_back then
      chunk = reversed(redis.call('ZRANGE', key, here - size, here - 1))
    else
      chunk = redis.call('ZRANGE', key, here, here + size - 1)
    end
    local looked, last = take(page, chunk, with_bodies, is_wanted, limit)
    left, here = left - looked, is_back and here - looked or here + looked
    more = {chunk[looked], last and sub(last, 2, 9)}
  end
  -- Nothing was looked at: another want has used up what may be read.
  if left > 0 and not more and limit > 0 then return {} end
  return {page[1], page[2], page[3], left > 0 and more or false}
end

-- {kind, with bodies, begin, end, limit}: the page, and the last number looked at if there may be more.
local function members(with_bodies, is_back, from, to, limit)
  local page, more = {{}, {}, {}}, false
  local begin, count = from, math.min(limit, rows_left)
  while #page[1] < count and bytes_left > 0 do
    local size = math.min(CHUNK, count - #page[1])
    local command = is_back and 'ZREVRANGEBYLEX' or 'ZRANGEBYLEX'
    -- One more, to know whether there is one.
    local found = redis.call(command, groups, begin, to, 'LIMIT', 0, size + 1)
    local chunk = {}
    for i = 1, math.min(size, #found) do chunk[i] = sub(found[i], -8) end
    local looked = take(page, chunk, with_bodies, nil, limit)
    more = looked < #found and chunk[looked] or false
    if not more then break end
    begin = '(' .. found[looked]
  end
  if #page[1] == 0 and limit > 0 and (count == 0 or bytes_left <= 0) then return {} end
  return {page[1], page[2], page[3], more}
end

for _, want in ipairs(cmsgpack.unpack(ARGV[4])) do
  local kind, with_bodies = want[1], want[2] == 1
  local answer
  if kind == 'keys' then answer = by_keys(with_bodies, want[3])
  elseif kind == 'numbers' then answer = each(with_bodies, want[3])
  elseif kind == 'scan' then answer = span(with_bodies, false, unpack(want, 3))
  elseif kind == 'back' then answer = span(with_bodies, true, unpack(want, 3))
  elseif kind == 'find' then answer = members(with_bodies, false, unpack(want, 3))
  elseif kind == 'find back' then answer = members(with_bodies, true, unpack(want, 3))
  else answer = redis.call('HGETALL', tallies) end
  answers[#answers + 1] = answer
end
return answers

#!lua name=weir

-- What must be atomic in Redis. Keys and their values are described in keys.go, the functions' callers are the
-- Go files named below. A caller may be older than the library, so a function whose KEYS, ARGV or reply change
-- gets a new name, and VERSION grows with every change.
--
-- Lua does not roll back. Where a function takes several steps, one whose loss would lose an event comes first, as the
-- retry before the acknowledgement, or the event before its deduplication keys.

local VERSION = 21

local STEPS = 10000           -- a deduplication key's time is counted in so many parts of its bucket
local WITH_ID = 32768         -- is added to the time of a deduplication key that stores an id
local MOST = 1000             -- fields for one command: Lua's stack has room for 8,000 arguments
local SLACK = 60000           -- ms by which a clock may be set back and go on with the bucket that it has
local BATCH_PERIOD = 30000    -- ms of a period of the batch memory
local BATCH_PERIODS = 5       -- after so many a period's number comes again; its hashes live for less
local SLOTS = 8               -- buckets of deduplication keys at a time, more than two windows take
local SLOT_NAMES = { '0', '1', '2', '3', '4', '5', '6', '7' }
local LAST_POSITION = 1048575 -- the highest sequence number that readers can have
local LAST_SEQUENCE = 1000000 -- a sequence number from which the next entry takes the next millisecond

local function number(n) return string.format('%.0f', n) end

----------------------------------------------------------------------------------------------------------------
-- Arguments
--
-- Whoever has a role's password may call the role's functions with any arguments, and Redis serves nobody else
-- meanwhile. So each function looks at its keys and arguments before it does anything: what it may cost is bounded, and
-- nothing is done by halves. What is stored is read in small steps, whatever its size.

local MOST_ADDITIONS = 512     -- events of one call of weir_append
local MOST_ADDED = 8388608     -- bytes of entries of one call of weir_append
local MOST_EVENTS = 1000       -- events of one call of any other function
local MOST_TRIMMED = 1000      -- entries that one call of weir_trim may remove, and waiting events that it may take back
local MOST_ENTRY = 2097152     -- bytes of an entry: twice the largest body of an event
local MOST_RECORD = 4096       -- bytes of an event's record, and of what stands before the records
local MOST_NAME = 255          -- bytes of a platform's name
local MOST_ID = 4096           -- bytes of an event's id
local MOST_IDENTIFIERS = 12    -- of an event's person
local MOST_READ = 4194304      -- bytes of entries that one call reads, and few entries more
local MOST_READ = 4194304      -- bytes of deduplication keys, or of identifiers, that one call of weir_append reads, many times what there is
local MOST_REPLY = 2359296     -- bytes of what the batch memory has of one call
local MOST_ATTEMPTS = 256      -- bytes of what is kept of an event that waits: its attempts, when it was put back, its ticket
local MOST_TICKET = 256        -- bytes of a ticket, with when it was given
local MOST_ORDER = 256         -- bytes of what one event says of its order
local MOST_REFUNDS = 64        -- of an order that are known
local ORDER_LIFE = 5184000000  -- ms for which an order is known after something of it was settled: 60 days
local MOST_GROUPS = 128        -- groups of a stream, many times the platforms that a property may have
local MOST_KEY = 1024          -- bytes of a key's name
local MOST_RATED = 16          -- keys of a property that have a rate of their own
local MOST_MADE = 1048576      -- bytes of deduplication keys that one call of weir_append writes
local ASKED = 16               -- fields that are read before their bytes are counted
local FIELD = 1024             -- bytes that a field too many of an entry counts for, beside its own
local MOST_ERASED = 256        -- events of one call of weir_erase, and MOST_SHARED by the number of groups
local MOST_SHARED = 1024
local MOST_ERASURES = 255      -- that one call is about: a byte says which
local MOST_COUNTED = 4000      -- that the records of one call of weir_replace_records are counted for
local MOST_DIGESTS = 8         -- deduplication keys that may be an event's
local MOST_FIELD = 65536       -- bytes of a field of deduplication keys, many times what there is
local MOST_COUNTER = 1024      -- bytes of a counter's name, many times what there is
local MOST_TOKEN = 64          -- bytes of what a block of the archive's is told by
local MOST_REQUEST = 16384     -- bytes of a request for an erasure
local MOST_REQUESTS = 524288   -- bytes of requests that one call replies with, and one request more
local REST = 128               -- entries below an id that are trimmed one by one, more than a stream's node has
local LATEST = 9999999999999   -- a ms beyond all plans
local LONGEST = 100000000000    -- ms of a window: three years
local LARGEST = 9007199254740991

local function wrong(what) error({ err = 'ERR Weir: ' .. what }) end

-- whole returns a decimal argument as a number; low and high bound it.
local function whole(text, what, low, high)
  local n = text and #text <= 17 and string.find(text, '^%-?%d+$') and tonumber(text)
  if not n or n < low or n > high then
    wrong(what .. ' must be a whole number from ' .. number(low) .. ' to ' .. number(high))
  end
  return n
end

-- time is whole for milliseconds since 1970; before that only for what is always due.
local function time(text, what) return whole(text, what, -LATEST * 10, LATEST) end

-- readable says whether an id is one that readers can have: a ms of at most 15 digits, a number of at most 7.
local function readable(id)
  local ms, seq = string.match(#id <= 23 and id or '', '^(%d+)%-(%d+)$')
  return ms ~= nil and #ms <= 15 and #seq <= 7
end

local function position(text, what)
  if not text or #text > 36 or not string.find(text, '^%d+%-%d+$') then wrong(what .. ' must be a stream id') end
  return text
end

local function bounded(text, what, most)
  if not text or #text > most then wrong(what .. ' must have at most ' .. most .. ' bytes') end
  return text
end

-- listed says how many elements of size arguments stand behind the first.
local function listed(args, first, size, most)
  local n = (#args - first) / size
  if n < 0 or n ~= math.floor(n) or n > most then
    wrong('there must be ' .. first .. ' arguments and then ' .. size .. ' for each of at most ' .. most .. ' events')
  end
  return n
end

-- expect makes sure that the keys are those of one property with these names, in this order.
local function expect(keys, ...)
  local names = { ... }
  local prefix = #keys == #names and string.match(keys[1], '^(weir:{[^{}]+}:)')
  if not prefix then wrong('there must be ' .. #names .. ' keys of a property') end
  for i = 1, #names do
    if keys[i] ~= prefix .. names[i] then wrong('key ' .. i .. ' must be ' .. prefix .. names[i]) end
  end
end

-- expect_retries is expect where the last three keys are those of a platform's waiting events.
local function expect_retries(keys, platform, ...)
  if not platform or platform == '' or #platform > MOST_NAME then
    wrong('a platform must have a name of at most ' .. MOST_NAME .. ' bytes')
  end
  local names, retry = { ... }, 'retry:' .. platform
  names[#names + 1], names[#names + 2], names[#names + 3] = retry .. ':due', retry .. ':open', retry .. ':attempts'
  expect(keys, unpack(names))
end

-- platform_of returns the platform of a key of waiting events.
local function platform_of(key)
  return key and #key <= MOST_KEY and string.match(key, '^weir:{[^{}]+}:retry:(.*):due$')
end

----------------------------------------------------------------------------------------------------------------
-- Times and stream ids

local function two_bytes(n) return string.char(math.floor(n / 256), n % 256) end

-- microseconds is Redis's clock. All that is decided here goes by it, and by no caller's.
local function microseconds()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local function server_ms() return math.floor(microseconds() / 1000) end

local function split(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

-- weight returns about what it costs to have read an entry, in bytes. One of ours has one field.
local function weight(entry)
  local fields = entry[2]
  return #fields[2] + (#fields - 2) * FIELD
end

-- range returns the entries from one id to another, the oldest first, count and about bytes of them at most; and
-- whether those are all.
local function range(key, from, to, count, bytes)
  local entries = {}
  while bytes > 0 and #entries < count do
    local entry = redis.call('XRANGE', key, from, to, 'COUNT', 1)[1]
    if not entry then return entries, true end
    entries[#entries + 1] = entry
    bytes = bytes - weight(entry)
    from = '(' .. entry[1]
  end
  return entries, false
end

-- before says whether stream id a is lower than b.
local function before(a, b)
  local a_ms, a_seq = split(a)
  local b_ms, b_seq = split(b)
  return a_ms < b_ms or (a_ms == b_ms and a_seq < b_seq)
end

----------------------------------------------------------------------------------------------------------------
-- The clock (clock.go)
--
-- Redis's clock may be set, or another node with another one may take over. A deliverer looks at it once a minute and
-- writes down what it saw: when, how far Redis's clock is ahead of the time that is believed (behind: below 0), and
-- since when. A step beyond TOLERANCE that no monotonic clock has seen is not believed: the time before goes on.

local TOLERANCE = 3600000  -- ms by which clocks may differ
local SETTLED = 86400000   -- ms after which a step is believed that the deliverer's clock agrees with

-- last_look returns what was seen then: Redis's time, how far it was ahead, and since when; nil where nobody has
-- looked.
local function last_look(key)
  local text = redis.call('GETRANGE', key, 0, 63)
  local seen, ahead, since = string.match(text, '^(%d+):(%-?%d+):(%d+)$')
  return tonumber(seen), tonumber(ahead), tonumber(since)
end

local function near(a, b) return math.abs(a - b) <= TOLERANCE end

-- believed returns the time, a time that has passed for sure, by which alone something may be forgotten, and whether
-- the time is that of Redis's clock. witness is the caller's: where Redis's clock is ahead, or nobody has looked for
-- long, and the two agree, as after a pause of days, new things are dated by it, though nothing is forgotten for its
-- sake yet.
local function believed(key, witness)
  local now = server_ms()
  local seen, ahead = last_look(key)
  if not seen then return now, now, true end
  local looked = near(now, seen)
  local sure = (looked and now or seen) - ahead
  if witness and now > sure and near(now, witness) then return now, sure, true end
  return sure, sure, looked and ahead == 0
end

-- weir_look: KEYS clock; ARGV ms that have passed on the caller's monotonic clock since it looked last, or "" where it
-- has not, and its clock in ms. Replies with the time that is believed, and how far Redis's clock is ahead of it, in
-- ms.
local function look(keys, args)
  expect(keys, 'clock')
  local passed = args[1] ~= '' and whole(args[1], 'the time that has passed', 0, LATEST) or nil
  local witness, now = time(args[2], 'the clock'), server_ms()
  local seen, ahead, since = last_look(keys[1])
  if not seen then seen, ahead, since, passed = now, 0, now, 0 end
  local agrees, step = near(now, witness), now - seen - (passed or 0)
  -- Whoever has just started cannot know how long nobody looked.
  local paused = not passed and agrees and step > 0 and step <= SETTLED
  if math.abs(step) > TOLERANCE and not paused then ahead, since = ahead + step, now end
  local settled = agrees and now - since >= SETTLED
  if math.abs(ahead) <= TOLERANCE or settled then ahead = 0 end
  redis.call('SET', keys[1], number(now) .. ':' .. number(ahead) .. ':' .. number(since))
  return { now - ahead, ahead }
end

----------------------------------------------------------------------------------------------------------------
-- Deduplication keys
--
-- What they cost decides what an event costs, and a call from Lua costs more than what it does: so all deduplication
-- keys of a bucket lie in one hash, which is asked with one command for a whole batch and written with another. A field
-- is the beginning of an id's digest; its value the records of the deduplication keys with that beginning, nearly
-- always one: the rest of the digest, 4 bytes; when it was recorded, in parts of the bucket, 2 bytes; and where the
-- highest bit of those is set, the length of the first event's id, 2 bytes, and that id.

-- slot_for returns the number of a bucket that is out of use; where all are in use, of the one whose deduplication keys
-- end first, which are forgotten. That takes more changes of the window, or jumps of the clock, than there are slots,
-- within one window.
local function slot_for(used)
  local oldest
  for slot = 1, SLOTS do
    local bucket = used[slot]
    if not bucket then return slot end
    if not oldest or bucket.opened + bucket.length < used[oldest].opened + used[oldest].length then oldest = slot end
  end
  return oldest
end

-- buckets_in_use returns the buckets by slot. Those that no window reaches any more go: freed by the way, where an
-- expiry would hold Redis up, and go by its clock however that was set.
local function buckets_in_use(root, now)
  local used = {}
  for slot, name in ipairs(redis.call('HMGET', root, unpack(SLOT_NAMES))) do
    if name then
      local length, opened = string.match(name, '^(%d+):(%d+)$')
      length, opened = tonumber(length), tonumber(opened)
      if not length or length < 1 or opened + 3 * length <= now then
        redis.call('HDEL', root, SLOT_NAMES[slot])
        redis.call('UNLINK', root .. ':' .. SLOT_NAMES[slot])
      else
        used[slot] = { key = root .. ':' .. SLOT_NAMES[slot], length = length, opened = opened }
      end
    end
  end
  return used
end

-- open_bucket returns the bucket that takes new deduplication keys, and a list of the others that have deduplication
-- keys not older than since.
local function open_bucket(root, window, now, since)
  local wanted, current, used = math.ceil(window / 2), nil, buckets_in_use(root, since + window)
  for _, bucket in pairs(used) do
    -- A clock that was set back a little goes on with the bucket that it has. Of several the newest takes new
    -- deduplication keys.
    local fits = bucket.length == wanted and bucket.opened <= now + SLACK and now < bucket.opened + wanted
    if fits and not (current and current.opened > bucket.opened) then current = bucket end
  end
  if not current then
    local slot = slot_for(used)
    current = { key = root .. ':' .. SLOT_NAMES[slot], length = wanted, opened = now }
    used[slot] = current
    redis.call('UNLINK', current.key)
    redis.call('HSET', root, SLOT_NAMES[slot], number(wanted) .. ':' .. number(now))
  end
  local others = {}
  for slot = 1, SLOTS do
    local bucket = used[slot]
    if bucket and bucket ~= current and bucket.opened + bucket.length > since then others[#others + 1] = bucket end
  end
  local step = math.max(0, math.floor((now - current.opened) / math.ceil(wanted / STEPS)))
  current.step, current.step_with_id = two_bytes(step), two_bytes(WITH_ID + step)
  return current, others
end

-- allowance is what a call may still read: bytes of deduplication keys, and deduplication keys that it walks past. Who
-- has the password may have written a million of them under one field.
local function allowance(count, what) return { what = what, bytes = MOST_READ, records = 4096 + 8 * count } end

-- ask returns what a hash has of the fields args[first] to args[last], false where it has nothing.
local function ask(key, args, first, last, left)
  local values = {}
  for from = first, last, ASKED do
    for _, value in ipairs(redis.call('HMGET', key, unpack(args, from, math.min(from + ASKED - 1, last)))) do
      values[#values + 1] = value
      left.bytes = left.bytes - (value and #value or 0)
    end
    if left.bytes < 0 then wrong('the ' .. left.what .. ' of these events have more than ' .. MOST_READ .. ' bytes') end
  end
  return values
end

-- find looks for a deduplication key among those of its field. Returns the id that it stores, "" for none, the step at
-- which it was recorded, where its record begins, and where the next one does; nil where it is not there.
local function find(records, rest, left)
  local at, last = 1, #records
  while at < last do
    left.records = left.records - 1
    if left.records < 0 then return nil end -- no error: events may have been added by now
    local high, low = string.byte(records, at + 4, at + 5)
    if not low then return nil end
    local step, id, after = high * 256 + low, '', at + 6
    if step >= WITH_ID then
      local first, second = string.byte(records, at + 6, at + 7)
      if not second then return nil end
      after = at + 8 + first * 256 + second
      step, id = step - WITH_ID, string.sub(records, at + 8, after - 1)
    end
    if string.sub(records, at, at + 3) == rest then return id, step, at, after end
    at = after
  end
  return nil
end

-- find_older returns by number what the valid deduplication keys of other buckets store: those not older than since.
-- The fields are args[first] to args[last], behind them the rests of their digests.
local function find_older(buckets, since, args, first, last, left)
  local found = {}
  for _, bucket in ipairs(buckets) do
    local unit = math.ceil(bucket.length / STEPS)
    for i, records in ipairs(ask(bucket.key, args, first, last, left)) do
      if records and not found[i] then
        local id, step = find(records, args[last + i], left)
        if id and bucket.opened + (step + 1) * unit > since then found[i] = id end
      end
    end
  end
  return found
end

-- keep writes deduplication keys or persons down: fields and values by turns.
local function keep(bucket, made)
  for from = 1, #made, MOST do
    redis.call('HSET', bucket.key, unpack(made, from, math.min(from + MOST - 1, #made)))
  end
end

----------------------------------------------------------------------------------------------------------------
-- Persons
--
-- Identifiers that an event has together are one person's from then on. What an identifier stands for is kept in hashes
-- like those of deduplication keys, with buckets of half the retention: a field is an identifier's digest, its value the
-- person, 8 bytes, and when they were joined, in ms, 6 bytes: of several buckets the latest tells. Where nothing is
-- kept a client id stands for itself, since it names the person of most events, and others for nobody yet: so whoever is
-- known by one identifier costs nothing here.

local PERSON = 8                          -- bytes of an identifier's digest and of a person
local RECORD = '>c8I6'                    -- what is kept of an identifier
local RECORD_SIZE = PERSON + 6
local PERSON_FIELD = '\233\003'           -- begins the field "person" of an entry: number 61, fixed64
local MASKED_FIELD = '\129\004'          -- begins the field "masked_person": number 64, fixed64
local MASKED = 128                        -- is added to the place of the client id where a mask follows the identifiers
local NOBODY = '\0\0\0\0\0\0\0\0'         -- is no person: readers take it for none

local function is_masked(packed) return packed ~= '' and string.byte(packed) >= MASKED end

-- masked returns a person XORed with the mask that stands behind the identifiers.
local function masked(person, packed)
  local a, b = struct.unpack('>i4i4', person)
  local c, d = struct.unpack('>i4i4', packed, #packed - PERSON + 1)
  return struct.pack('>i4i4', bit.bxor(a, c), bit.bxor(b, d))
end

-- identifiers_of returns those of all events of a call in a list, and behind which of that list an event's own begin, by
-- the number of the argument that tells them. That is args[first], and every third one from there on.
local function identifiers_of(args, first)
  local all, before, n = {}, {}, 0
  for i = first, #args, 3 do
    local packed = args[i]
    before[i] = n
    for at = 2, #packed - (is_masked(packed) and PERSON or 0), PERSON do
      n = n + 1
      all[n] = string.sub(packed, at, at + PERSON - 1)
    end
  end
  before[#args + 3] = n
  return all, before
end

-- persons_of returns whom identifiers stand for, and which of them are kept in no bucket that lasts.
local function persons_of(identifiers, bucket, others)
  local left = allowance(0, 'identifiers')
  local persons, records, old = {}, {}, {}
  local function look(found, is_old)
    for i, record in ipairs(found) do
      if record and #record == RECORD_SIZE then
        local id = identifiers[i]
        local other = records[id]
        if not other or select(2, struct.unpack(RECORD, record)) > select(2, struct.unpack(RECORD, other)) then
          persons[id], records[id], old[id] = string.sub(record, 1, PERSON), record, is_old
        end
      end
    end
  end
  look(ask(bucket.key, identifiers, 1, #identifiers, left), nil)
  for _, other in ipairs(others) do look(ask(other.key, identifiers, 1, #identifiers, left), true) end
  return persons, old
end

-- person_of returns whose event it is that has the identifiers first to last, of which the client-th is a client id: the
-- person that the strongest of those stands for that stand for somebody, else a new one, called after the strongest.
local function person_of(identifiers, first, last, client, persons)
  for i = first, last do
    local person = persons[identifiers[i]] or i == client and identifiers[i]
    if person then return person end
  end
  return identifiers[first]
end

-- join has all of an event's identifiers stand for its person. What was not known before, and what would be forgotten
-- soon, is noted in made, with the time that stamp is; returns how many elements that has.
local function join(identifiers, first, last, client, person, persons, old, made, n, stamp)
  for i = first, last do
    local id = identifiers[i]
    local known = persons[id]
    local needless = known == person and not old[id] or not known and (first == last or i == client and id == person)
    if not needless then
      persons[id], old[id] = person, nil
      made[n + 1], made[n + 2] = id, person .. stamp
      n = n + 2
    end
  end
  return n
end

----------------------------------------------------------------------------------------------------------------
-- Keys of sealed parts (sealer.go, opener.go, drop.go)
--
-- What must go from an event before the event does is sealed under a key that many events share, those of one period.
-- The keys of a part lie in a hash: number of the period since 1970 → a random name, 8 bytes, and the key, 32 bytes.

local PERIODS = { device = 3600000, identity = 86400000 } -- ms
local KEY_NAME = 8                                        -- bytes
local KEY_SIZE = KEY_NAME + 32
local MOST_DROPPED = 20000                                -- periods whose keys one call drops: two years of hours
local NO_KEY = 'NOKEY Weir: the key that these events are sealed under is not the one of this time'

-- weir_seal: KEYS clock, seal:device or seal:identity; ARGV the caller's clock in ms, a new key. Replies with the number of the
-- period, its key, which is the new one where there was none, and the ms until the period is over.
local function seal(keys, args)
  local part = string.match(#(keys[2] or '') <= MOST_KEY and keys[2] or '', ':seal:(%l+)$')
  local period = PERIODS[part]
  expect(keys, 'clock', period and 'seal:' .. part or 'seal:device')
  local witness = time(args[1], 'the clock')
  if #(args[2] or '') ~= KEY_SIZE then wrong('a key must have ' .. KEY_SIZE .. ' bytes') end
  local now = believed(keys[1], witness)
  local number_of_period = math.floor(now / period)
  local name = number(number_of_period)
  -- What is no key, as only somebody else can have written it, seals nothing.
  if redis.call('HSTRLEN', keys[2], name) ~= KEY_SIZE then redis.call('HSET', keys[2], name, args[2]) end
  return { number_of_period, redis.call('HGET', keys[2], name), (number_of_period + 1) * period - now }
end

-- check_sealed makes sure that events which say that they are sealed under a key are so under the key of now: Redis may have
-- come back without the key that a collector holds, and readers would find another one, or none.
local function check_sealed(key, period, said, now)
  if said == '' then return end
  local name = number(math.floor(now / period))
  local there = redis.call('HSTRLEN', key, name) == KEY_SIZE and redis.call('HGET', key, name)
  if not there or string.sub(there, 1, KEY_NAME) .. name ~= said then error({ err = NO_KEY }) end
end

-- check_key looks at what is told of a key: its name and the number of its period, or nothing.
local function check_key(said)
  if said ~= '' then whole(#said <= 32 and string.sub(said, KEY_NAME + 1) or nil, 'the period of a key', 0, LATEST) end
end

-- weir_drop: KEYS clock, seal:device, seal:identity, seal:dropped; ARGV age in ms beyond which a device's key goes, and that of
-- an identity's: counted from the end of its period. Replies with how many keys went of each. seal:dropped notes the last period
-- whose key is gone, and when one went last.
local function drop(keys, args)
  expect(keys, 'clock', 'seal:device', 'seal:identity', 'seal:dropped')
  local _, passed = believed(keys[1])
  local ages, went = { whole(args[1], 'the age', 0, LATEST), whole(args[2], 'the age', 0, LATEST) }, {}
  for i, part in ipairs({ 'device', 'identity' }) do
    local last = math.floor((passed - ages[i]) / PERIODS[part]) - 1
    local noted = redis.call('HSTRLEN', keys[4], part) <= 17 and tonumber(redis.call('HGET', keys[4], part) or nil) or 0
    local first, gone = math.max(noted + 1, last - MOST_DROPPED + 1), 0
    while first <= last do
      local names = {}
      for n = first, math.min(last, first + MOST - 1) do names[#names + 1] = number(n) end
      gone = gone + redis.call('HDEL', keys[i + 1], unpack(names))
      first = first + #names
    end
    -- Where the age was raised, or a clock set back, what is noted goes back too, so that nothing is passed over later.
    if last ~= noted then redis.call('HSET', keys[4], part, number(last)) end
    if gone > 0 then redis.call('HSET', keys[4], 'at', number(passed)) end
    went[i] = gone
  end
  return went
end

----------------------------------------------------------------------------------------------------------------
-- Append (append.go)

local function batch_key(root, batch, now, age)
  return string.format('%s:%d:%02x', root, (math.floor(now / BATCH_PERIOD) - age) % BATCH_PERIODS, string.byte(batch))
end

-- pack_reply and unpack_reply are for what weir_append replies: of each exception the event's number, what it is, and a
-- text with its length. Redis's own cmsgpack is not asked to read what a collector may have written: a few bytes may
-- stand for a million tables there.
local EXCEPTION = '>I2c1I2c0'

local function pack_reply(reply)
  local packed = { 'r' } -- so that a reply without exceptions is one, too
  for i = 1, #reply, 3 do
    local text = string.sub(reply[i + 2], 1, MOST_ID)
    packed[#packed + 1] = struct.pack(EXCEPTION, reply[i], reply[i + 1], #text, text)
  end
  return table.concat(packed)
end

local function unpack_reply(packed)
  local reply, at = {}, 2
  while at <= #packed and #reply < 3 * MOST_ADDITIONS do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3], at = struct.unpack(EXCEPTION, packed, at)
  end
  return reply
end

-- recall returns the reply to a batch that was committed before, nil where it was not.
local function recall(root, batch, now)
  for age = 0, 1 do
    local key = batch_key(root, batch, now, age)
    local bytes = redis.call('HSTRLEN', key, batch)
    if bytes > MOST_REPLY then wrong('what is remembered of this batch has more than ' .. MOST_REPLY .. ' bytes') end
    if bytes > 0 then return unpack_reply(redis.call('HGET', key, batch)) end
  end
  return nil
end

local function remember(root, batch, now, reply)
  local key = batch_key(root, batch, now, 0)
  redis.call('HSET', key, batch, pack_reply(reply))
  -- Of what somebody else has written there too, nothing stays for longer.
  redis.call('PEXPIRE', key, (BATCH_PERIODS - 1) * BATCH_PERIOD, 'LT')
end

local CROWDED = 'ERR Weir: the deduplication keys of these events would have more than ' .. MOST_MADE .. ' bytes'
local BEYOND = "ERR Weir: the events stream has an id beyond all plans, behind which nothing can be read; docs/operate/security.md says what to do"

local function too_early(id) return type(id) == 'table' and id.err and string.find(id.err, 'equal or smaller', 1, true) end

-- add appends one entry at "MS-*" and returns its stream id, or a table with err. An entry never comes before the
-- stream's last one: where at is, Redis chooses the id. But Redis chooses by its own clock, and where that is not
-- believed a time is taken that is a little later, at most twice as late as the last one, which the caller may not
-- read.
local function add(events, at, own_clock, data)
  local id = redis.pcall('XADD', events, at, 'e', data)
  if not too_early(id) then return id end
  local later = own_clock and LATEST or 1000
  while later <= 2 * TOLERANCE do
    id = redis.pcall('XADD', events, number(tonumber(string.match(at, '^%d+')) + later) .. '-*', 'e', data)
    if not too_early(id) then return id end
    later = 2 * later
  end
  id = redis.pcall('XADD', events, '*', 'e', data)
  -- Behind an id that is beyond all plans, which only somebody else can have written, no reader finds an event.
  if type(id) == 'string' and split(id) > LATEST then return { err = BEYOND } end
  return id
end

-- following returns the id for the entry after id, "MS-*" as wanted, but for a sequence number that would
-- outgrow a packed position: that happens only when the clock stands still or goes back.
local function following(id, wanted)
  if #id <= 20 then return wanted end
  local ms, seq = split(id)
  if seq < LAST_SEQUENCE then return wanted end
  return number(ms + 1) .. '-0'
end

-- check_identifiers looks at what is told of an event's identifiers.
local function check_identifiers(packed)
  if packed == '' then return end
  local count, place = (#packed - 1) / PERSON, string.byte(packed)
  if is_masked(packed) then count, place = count - 1, place - MASKED end
  if count < 1 or count ~= math.floor(count) or count > MOST_IDENTIFIERS or place > count then
    wrong('identifiers must be the place of the client id and then up to ' .. MOST_IDENTIFIERS .. ' of ' .. PERSON .. ' bytes')
  end
end

-- check_additions looks at what follows the first eight arguments of weir_append.
local function check_additions(args, count)
  listed(args, 8 + 2 * count, 3, MOST_ADDITIONS)
  for i = 9, 8 + count do
    if #args[i] ~= 6 or #args[i + count] ~= 4 then wrong('a digest must have 6 and 4 bytes') end
  end
  local digests, bytes = 0, 0
  for i = 9 + 2 * count, #args, 3 do
    local id = args[i + 1]
    digests, bytes = digests + (id == '' and 1 or 2), bytes + #args[i]
    check_identifiers(args[i + 2])
    if #args[i] > MOST_ENTRY then wrong('an entry must have at most ' .. MOST_ENTRY .. ' bytes') end
    if #id > MOST_ID then wrong('an event id must have at most ' .. MOST_ID .. ' bytes') end
  end
  if digests ~= count then wrong('there must be a digest for each id') end
  if bytes > MOST_ADDED then wrong('the entries must have at most ' .. MOST_ADDED .. ' bytes together') end
end

-- weir_append: KEYS events, dedup, batches, clock, join, seal:device, seal:identity; ARGV window in ms, the caller's clock in ms, batch id (16
-- bytes), "1" where two of the digests have the same field, else "", for how many ms identifiers stand for a person,
-- number of digests, and which keys the devices and the identities of these events are sealed under: for each the key's name and
-- the number of its period, or "" where none is sealed; then of each digest the field and after those of each the rest, the digests being each event's of
-- its event_id and, where it has one, of its order_id; then for each event: entry, event id where there is an order_id,
-- else "", and its identifiers, "" where nobody is to be known by them: a byte that is the place of the client id among
-- them, 0 for none, and of each the digest, the strongest first; where the person is to be masked, 128 more in the byte and the
-- mask at the end. Replies with a flat list of
-- the exceptions, three elements each: the event's number from 0, "d" (duplicate) or "e" (error), and the first event's
-- id ("" for its own) or the error's text. A batch that was committed in the last half minute gets the same reply again
-- and appends nothing. With an error that begins with NOKEY, nothing has been done: one of the keys is not the one that
-- weir_seal replies with.
--
-- Deduplication keys are written after the events that they are for, and nothing between can fail. An event that is not
-- appended records no key and joins nothing.
local function append(keys, args)
  expect(keys, 'events', 'dedup', 'batches', 'clock', 'join', 'seal:device', 'seal:identity')
  local events, dedup, batches = keys[1], keys[2], keys[3]
  local window, witness, batch = whole(args[1], 'the window', 1, LONGEST), time(args[2], 'the clock'), args[3]
  local joined_for = whole(args[5], 'the time for which identifiers stand for a person', 1, LONGEST)
  local count = whole(args[6], 'the number of digests', 1, 2 * MOST_ADDITIONS)
  if #batch ~= 16 then wrong('a batch id must have 16 bytes') end
  check_additions(args, count)
  check_key(args[7])
  check_key(args[8])
  local now, passed, own_clock = believed(keys[4], witness)
  local wanted = number(now) .. '-*'
  local known = recall(batches, batch, now)
  if known then return known end
  check_sealed(keys[6], PERIODS.device, args[7], now)
  check_sealed(keys[7], PERIODS.identity, args[8], now)

  local since = passed - window
  local bucket, others = open_bucket(dedup, window, now, since)
  local fields, rests = 8, 8 + count -- behind these arguments
  local left = allowance(count, 'deduplication keys')
  local stored = ask(bucket.key, args, fields + 1, rests, left)
  local older = find_older(others, since, args, fields + 1, rests, left)
  -- made has the batch's own deduplication keys as keep takes them, own the values of those fields that more than one
  -- of them may have.
  local made, own = {}, args[4] == '1' and {} or nil

  local identifiers, behind = identifiers_of(args, rests + count + 3)
  local joins, joined, stamp = {}, 0, struct.pack('>I6', now)
  local persons, old, latest, earlier
  if #identifiers > 0 then
    latest, earlier = open_bucket(keys[5], joined_for, now, passed - joined_for)
    persons, old = persons_of(identifiers, latest, earlier)
  end

  local reply, at, n, digest, failed = {}, wanted, 0, 0, nil
  local room = MOST_MADE -- for the bytes of made, but for those that were read
  local function make(name, there, record)
    made[n + 1], made[n + 2] = name, (there or '') .. record
    n, room = n + 2, room - #record
    if own then
      room, own[name] = room - #(own[name] or ''), made[n]
    end
  end
  for i = rests + count + 1, #args, 3 do
    digest = digest + 1
    local field, rest, id = args[fields + digest], args[rests + digest], args[i + 1]
    local there = own and own[field] or stored[digest]
    if room < 0 then failed = CROWDED end
    local failure, first = failed, nil
    if not failure then first = older[digest] or there and find(there, rest, left) end
    local order, order_rest, order_there
    if id ~= '' then
      digest = digest + 1
      order, order_rest = args[fields + digest], args[rests + digest]
      order_there = own and own[order] or stored[digest]
      if not failure then first = first or older[digest] or order_there and find(order_there, order_rest, left) end
    end
    if not first and not failure then
      local entry, person = args[i], nil
      local from, to, client = behind[i + 2] + 1, behind[i + 5], nil
      if from <= to then
        client = string.byte(args[i + 2]) % MASKED
        client = client > 0 and from + client - 1
        person = person_of(identifiers, from, to, client, persons)
        -- What readers take for the person of an event that says nothing needs no saying.
        if person ~= identifiers[client or from] and person ~= NOBODY then
          entry = entry .. (is_masked(args[i + 2]) and MASKED_FIELD .. masked(person, args[i + 2]) or PERSON_FIELD .. person)
        end
      end
      local added = add(events, at, own_clock, entry)
      if type(added) == 'table' then
        failure = added.err
        failed = failure == BEYOND and failure or nil
      else
        at = following(added, wanted)
        if person then joined = join(identifiers, from, to, client, person, persons, old, joins, joined, stamp) end
        make(field, there, rest .. bucket.step)
        if order then
          if own then order_there = own[order] or order_there end
          make(order, order_there, order_rest .. bucket.step_with_id .. two_bytes(#id) .. id)
        end
      end
    end
    if first or failure then
      reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = (i - 1 - rests - count) / 3, first and 'd' or 'e', first or failure
    end
  end
  if n > 0 then keep(bucket, made) end
  if joined > 0 then keep(latest, joins) end
  remember(batches, batch, now, reply)
  return reply
end

----------------------------------------------------------------------------------------------------------------
-- Rate (rate.go)

-- weir_allow: KEYS rate, or rate:1 to rate:16 for a key with a rate of its own; ARGV events a second, events wanted. Replies
-- with 1 or 0, how many more are allowed now, and the µs until the wanted ones are. The allowance of one second may be
-- used at once; more than that at once is allowed when it is whole, and paid for afterwards.
local function allow(keys, args)
  local own = tonumber(string.match(keys[1] or '', ':rate:(%d%d?)$'))
  expect(keys, own and own >= 1 and own <= MOST_RATED and 'rate:' .. own or 'rate')
  local limit, wanted = whole(args[1], 'the limit', 1, LATEST), whole(args[2], 'the number of events', 1, MOST_ADDITIONS)
  local now = microseconds()
  local second, interval = 1000000, 1000000 / limit
  local full = tonumber(redis.call('GET', keys[1]) or 0)
  -- What no call can have left, as after the clock was set back, counts for nothing.
  if not full or not (full >= now and full <= now + second + MOST_ADDITIONS * interval) then full = now end
  local wait = full + math.min(wanted, limit) * interval - second - now
  if wait > 0.5 then
    return { 0, math.max(0, math.floor((second - (full - now)) / interval + 0.001)), math.ceil(wait) }
  end
  full = full + wanted * interval
  redis.call('SET', keys[1], number(full), 'PX', number(math.ceil((full - now) / 1000) + 1))
  return { 1, math.max(0, math.floor((second - (full - now)) / interval + 0.001)), 0 }
end

----------------------------------------------------------------------------------------------------------------
-- Deliveries (groups.go, settle.go, replay.go)

local function forget(due, open, attempts, id)
  redis.call('ZREM', due, id)
  redis.call('ZREM', open, id)
  redis.call('HDEL', attempts, id)
end

-- is_past says, by an event's field of the attempts, whether the history has it in place of the stream.
local function is_past(tried) return string.find(tried, '^%d+:%d+h') ~= nil end

-- wait schedules an event; again is the ms at which it is due, tried its field of the attempts. What the stream does not have
-- keeps nothing of it from being trimmed, and is not trimmed with it.
local function wait(due, open, attempts, id, again, tried)
  redis.call('ZADD', due, again, id)
  if not is_past(tried) then redis.call('ZADD', open, (split(id)), id) end
  redis.call('HSET', attempts, id, tried)
end

-- has_group asks for one entry of the group, which costs the same however many groups there are.
local function has_group(events, group)
  local reply = redis.pcall('XPENDING', events, group, '-', '+', 1)
  if reply.err and not string.find(reply.err, '^NOGROUP ') then error(reply) end
  return not reply.err
end

-- info_of returns a number that Redis has of a stream, 0 where there is no stream.
local function info_of(key, name)
  if redis.call('EXISTS', key) == 0 then return 0 end
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do
    if info[i] == name then return info[i + 1] end
  end
  return 0
end

-- attempts_of returns what is kept of an event that waits, "" where there is nothing that makes sense.
local function attempts_of(key, id)
  return redis.call('HSTRLEN', key, id) <= MOST_ATTEMPTS and redis.call('HGET', key, id) or ''
end

-- weir_ensure_group: KEYS events, due, open, attempts; ARGV group, id behind which it begins, or "" where more events
-- follow in another call, number of the stream's events up to that id, ms at which the events are due, then for each
-- event that waits for another attempt: id, attempts. Does nothing where the group exists: what has become of the
-- events since is not the caller's to undo. Events that wait already go on as they do. Replies with 1 where the group
-- was missing, 0 where not.
local function ensure_group(keys, args)
  expect_retries(keys, args[1], 'events')
  local events, due_key, open, attempts = keys[1], keys[2], keys[3], keys[4]
  listed(args, 4, 2, MOST_EVENTS)
  if args[2] ~= '' then position(args[2], 'the id behind which the group begins') end
  local passed = whole(args[3], 'the number of events passed', 0, LARGEST)
  time(args[4], 'the time when events are due')
  for i = 5, #args, 2 do
    position(args[i], 'an event')
    whole(args[i + 1], 'the attempts', 0, LATEST)
  end
  if has_group(events, args[1]) then return 0 end
  for i = 5, #args, 2 do
    if not redis.call('ZSCORE', due_key, args[i]) then wait(due_key, open, attempts, args[i], args[4], args[i + 1]) end
  end
  if args[2] ~= '' then
    -- Told how many it has read, Redis knows from the start how many there are still to read.
    local read = info_of(events, 'entries-added') - (redis.call('XLEN', events) - passed)
    redis.call('XGROUP', 'CREATE', events, args[1], args[2], 'MKSTREAM', 'ENTRIESREAD', number(math.max(0, read)))
  end
  return 1
end

-- weir_destroy_group: KEYS events, due, open, attempts; ARGV group. Removes the group and what waits in it.
local function destroy_group(keys, args)
  expect_retries(keys, args[1], 'events')
  if redis.call('EXISTS', keys[1]) == 1 then redis.call('XGROUP', 'DESTROY', keys[1], args[1]) end
  return redis.call('UNLINK', keys[2], keys[3], keys[4])
end

-- take_due is weir_take.
local function take_due(keys, args)
  expect_retries(keys, platform_of(keys[2]), 'events')
  local events, due_key, open, attempts = keys[1], keys[2], keys[3], keys[4]
  local since, now, until_ms = time(args[1], 'the earliest time'), time(args[2], 'now'), time(args[3], 'the end of the lease')
  local count, bytes = whole(args[4], 'the count', 1, MOST_EVENTS), 0
  local taken, gone = {}, {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', due_key, number(since), number(now), 'LIMIT', 0, count)) do
    if bytes > MOST_READ then break end
    local known = readable(id)
    local entry = known and redis.call('XRANGE', events, id, id)[1]
    local kept = known and attempts_of(attempts, id) or ''
    if entry or is_past(kept) then
      local tried, replayed, past, ticket = string.match(kept, '^(%d+):?(%d*)(h?) ?(.*)$')
      taken[#taken + 1] = { id, tonumber(tried) or 0, entry and entry[2][2] or '', tonumber(replayed) or 0, ticket or '', past == 'h' and not entry and 1 or 0 }
      redis.call('ZADD', due_key, 'XX', number(until_ms), id)
      bytes = bytes + (entry and weight(entry) or FIELD)
    else
      if known then gone[#gone + 1] = id end
      forget(due_key, open, attempts, id)
    end
  end
  return { taken, gone }
end

-- weir_take: KEYS events, due, open, attempts; ARGV the earliest time that is asked for in ms, the latest, end of the
-- lease in ms, count. Leases the events that are due from the one to the other. Replies with a list of {id, attempts,
-- entry, ms at which it was put back by a replay or 0, ticket or "", 1 where the history has the entry and the stream does
-- not, else 0} and a list of ids whose entries are gone.
local function take(keys, args) return take_due(keys, args) end

-- weir_lease is weir_take for callers that know of no history: what that has is left to others, a lease later.
local function lease(keys, args)
  local reply, known = take_due(keys, args), {}
  for _, taken in ipairs(reply[1]) do
    if taken[6] == 0 then
      taken[6] = nil
      known[#known + 1] = taken
    end
  end
  reply[1] = known
  return reply
end

-- weir_due is weir_lease for callers that know no tickets.
local function due(keys, args)
  local reply = lease(keys, args)
  for _, taken in ipairs(reply[1]) do taken[5] = nil end
  return reply
end

-- pending_of returns which of n ids, the lowest and the highest given, are pending in the group. One look at all that
-- is pending between them costs less than one at each, unless there is much more.
local function pending_of(events, group, ids, lowest, highest)
  local pending, most = {}, 2 * #ids + 16
  local listed = redis.call('XPENDING', events, group, lowest, highest, most)
  if #listed < most then
    for _, entry in ipairs(listed) do pending[entry[1]] = true end
    return pending
  end
  for _, id in ipairs(ids) do
    if #redis.call('XPENDING', events, group, id, id, 1) > 0 then pending[id] = true end
  end
  return pending
end

-- order_name is an order in the keys of what is known of it: 10 bytes of a digest, in hexadecimal.
local function order_name(order)
  return (string.gsub(order, '.', function(c) return string.format('%02x', string.byte(c)) end))
end

-- order_prefix is what the keys of all orders on a platform begin with.
local function order_prefix(events, group) return string.sub(events, 1, -#'events' - 1) .. 'order:' .. group .. ':' end

-- order_key returns the key of what is known of an order on a platform.
local function order_key(events, group, order) return order_prefix(events, group) .. order_name(order) end

-- order_of reads what an event says of its order: 10 bytes of the order's digest, and words. "purchase", its state (sent,
-- delivered, failed), its value in ten-thousandths or "-", currency or "-", time in ms, and where it was sent; or "refund",
-- and the ms until which it is under way, or 0 where it no longer is.
local function order_of(text)
  local order, words = string.sub(text, 1, 10), string.sub(text, 11)
  local state, value, currency, at, target = string.match(words, '^purchase (%a+) (%-?%d*) ([%a-]+) (%d+) (%S*)$')
  if state and (state == 'sent' or state == 'delivered' or state == 'failed') then
    return order, { state, value, currency, at, target }
  end
  local until_ms = string.match(words, '^refund (%d+)$')
  if not until_ms or #until_ms > 15 then wrong('what is said of an order must be of a purchase or a refund') end
  return order, nil, until_ms
end

-- note_order writes down what an event that is being settled says of its order. What was delivered once stays delivered.
-- Refunds in another currency than the purchase's are none of it.
local function note_order(events, group, id, text)
  local order, purchase, until_ms = order_of(text)
  local key = order_key(events, group, order)
  if purchase then
    if purchase[1] ~= 'delivered' and redis.call('HGET', key, 'state') == 'delivered' then return end
    local currency = redis.call('HGET', key, 'currency')
    if currency and currency ~= purchase[3] then redis.call('UNLINK', key) end
    redis.call('HSET', key, 'state', purchase[1], 'value', purchase[2], 'currency', purchase[3], 'at', purchase[4], 'target', purchase[5])
  elseif redis.call('HGET', key, 'busy') == id then
    redis.call('HSET', key, 'busy_until', until_ms)
  else
    return
  end
  redis.call('PEXPIRE', key, number(ORDER_LIFE))
end

-- check_settlements looks at the arguments of weir_settle and weir_conclude, which have so many for each event.
local function check_settlements(args, size)
  if listed(args, 4, size, MOST_EVENTS) == 0 then wrong('there must be an event') end
  bounded(args[2], 'the head of the records', MOST_RECORD)
  position(args[3], 'the lowest id')
  position(args[4], 'the highest id')
  for i = 5, #args, size do
    position(args[i], 'an event')
    if args[i + 1] ~= '' then time(args[i + 1], 'the time of the next attempt') end
    whole(args[i + 2], 'the attempts', 0, LATEST)
    bounded(args[i + 3], 'a record', MOST_RECORD)
    if size > 4 then
      local ticket = bounded(args[i + 4], 'a ticket', MOST_TICKET)
      if ticket ~= '' and not string.find(ticket, '^%d+ %S+$') then wrong('a ticket must be a ms and a word') end
      if bounded(args[i + 5], 'what is said of an order', MOST_ORDER) ~= '' then order_of(args[i + 5]) end
    end
  end
end

-- settle_all is weir_settle and weir_conclude, which have so many arguments for each event.
local function settle_all(keys, args, size)
  expect_retries(keys, args[1], 'events', 'deliveries')
  check_settlements(args, size)
  local events, deliveries, due_key, open, attempts = keys[1], keys[2], keys[3], keys[4], keys[5]
  local group, record, ids = args[1], { args[2] }, {}
  for i = 5, #args, size do ids[#ids + 1] = args[i] end
  local waits = {}
  if redis.call('EXISTS', due_key) == 1 then
    for i, score in ipairs(redis.call('ZMSCORE', due_key, unpack(ids))) do waits[ids[i]] = score end
  end
  local pending = pending_of(events, group, ids, args[3], args[4])
  local settled, finished, acknowledged = 0, {}, {}
  for i = 5, #args, size do
    local id, again = args[i], args[i + 1]
    if waits[id] or pending[id] then
      settled = settled + 1
      record[#record + 1] = args[i + 3]
      if size > 4 and args[i + 5] ~= '' then note_order(events, group, id, args[i + 5]) end
      if again ~= '' then
        local tried = args[i + 2]
        if waits[id] then tried = tried .. (string.match(attempts_of(attempts, id), '^%d+(:%d+h?)') or '') end
        if size > 4 and args[i + 4] ~= '' then tried = tried .. ' ' .. args[i + 4] end
        wait(due_key, open, attempts, id, again, tried)
        waits[id] = again
      elseif waits[id] then
        finished[#finished + 1] = id
        waits[id] = nil
      end
      if pending[id] then
        acknowledged[#acknowledged + 1] = id
        pending[id] = nil
      end
    end
  end
  if settled > 0 and args[2] ~= '' then redis.call('XADD', deliveries, '*', 'd', table.concat(record)) end
  for _, id in ipairs(finished) do forget(due_key, open, attempts, id) end
  if #acknowledged > 0 then redis.call('XACK', events, group, unpack(acknowledged)) end
  return settled
end

-- weir_conclude: KEYS events, deliveries, due, open, attempts; ARGV group, head of the record entry or "" for no
-- record, lowest and highest of the ids, then for each event: id, ms at which it is due again or "" where this is
-- final, attempts, encoded record, ticket ("MS WORD": when the platform gave it, and what it is) or "", and what it says of
-- its order (order_of) or "". Events that are neither pending in the group nor waiting are settled already and are passed
-- over. Replies with the number of those that were not.
local function conclude(keys, args) return settle_all(keys, args, 6) end

-- weir_settle is weir_conclude for callers that know neither tickets nor orders.
local function settle(keys, args) return settle_all(keys, args, 4) end

-- weir_refund: KEYS events, due; ARGV group, 10 bytes of the order's digest, id of the refund's event, its amount in
-- ten-thousandths, its currency, now in ms, and the ms until which it is under way. Notes the refund with its order, once
-- however often it is said and whatever has become of the purchase, which may be sent again; and that it is under way where
-- the purchase was delivered and no other one is. Replies with the purchase's state, value, currency, time in ms and where
-- it was sent, with the sum of the refunds, and with 1 where this one may go, else 0; with an empty list where the order is
-- not known. A refund in another currency is not noted.
local function refund(keys, args)
  local group = platform_of(keys[2])
  if #keys ~= 2 or not group or group ~= args[1] then wrong('there must be the keys of the events and of what is due') end
  expect(keys, 'events', 'retry:' .. group .. ':due')
  if #args ~= 7 or #args[2] ~= 10 then wrong('there must be 7 arguments, of which the second has 10 bytes') end
  local id, amount = position(args[3], 'an event'), whole(args[4], 'the amount', 0, LARGEST)
  bounded(args[5], 'the currency', 8)
  local now, until_ms = time(args[6], 'now'), time(args[7], 'the end')
  local key = order_key(keys[1], group, args[2])
  local order, refunded, refunds = {}, 0, 0
  local flat = redis.call('HLEN', key) <= MOST_REFUNDS + 16 and redis.call('HGETALL', key) or {}
  for i = 1, #flat, 2 do order[flat[i]] = flat[i + 1] end
  if not order.state then return {} end
  local counts = order.currency == args[5]
  if counts then order['refund:' .. id] = number(amount) end
  for name, value in pairs(order) do
    if string.sub(name, 1, 7) == 'refund:' then refunded, refunds = refunded + (tonumber(value) or 0), refunds + 1 end
  end
  local free = 0
  if counts and refunds <= MOST_REFUNDS then
    redis.call('HSET', key, 'refund:' .. id, number(amount))
    local busy = order.busy and order.busy ~= id and (tonumber(order.busy_until) or 0) > now
    if order.state == 'delivered' and not busy then
      free = 1
      redis.call('HSET', key, 'busy', id, 'busy_until', number(until_ms))
    end
    redis.call('PEXPIRE', key, number(ORDER_LIFE))
  end
  return { order.state, order.value or '', order.currency or '', order.at or '0', order.target or '', number(refunded), free }
end

-- check_replay looks at the arguments of weir_replay.
local function check_replay(args)
  listed(args, 6, 3, MOST_EVENTS)
  position(args[2], 'the last records')
  bounded(args[3], 'the beginning of the records', MOST_RECORD)
  time(args[4], 'the time when events are due')
  time(args[5], 'now')
  bounded(args[6], 'the head of the records', MOST_RECORD)
  for i = 7, #args, 3 do
    position(args[i], 'an event')
    whole(args[i + 1], 'the attempts', 0, LATEST)
    bounded(args[i + 2], 'a record', MOST_RECORD)
  end
end

-- put_back is weir_replay and, where past says so, weir_replay_past.
local function put_back(keys, args, past)
  expect_retries(keys, args[1], 'events', 'deliveries')
  check_replay(args)
  local events, deliveries, due_key, open, attempts = keys[1], keys[2], keys[3], keys[4], keys[5]
  local newer, all = range(deliveries, '(' .. args[2], '+', MOST_EVENTS, MOST_READ)
  if not all then return -1 end
  for _, entry in ipairs(newer) do
    if string.sub(entry[2][2], 3, 2 + #args[3]) == args[3] then return -1 end
  end
  local record, again, from_past = { args[6] }, {}, {}
  for i = 7, #args, 3 do
    local id = args[i]
    local under_way = redis.call('ZSCORE', due_key, id) or #redis.call('XPENDING', events, args[1], id, id, 1) > 0
    local there = not under_way and #redis.call('XRANGE', events, id, id) > 0
    if there or past and not under_way then
      from_past[i] = not there
      record[#record + 1] = args[i + 2]
      again[#again + 1] = i
    end
  end
  if #again == 0 then return 0 end
  for _, i in ipairs(again) do wait(due_key, open, attempts, args[i], args[4], args[i + 1] .. ':' .. args[5] .. (from_past[i] and 'h' or '')) end
  redis.call('XADD', deliveries, '*', 'd', table.concat(record))
  return #again
end

-- weir_replay: KEYS events, deliveries, due, open, attempts; ARGV group, id of the last delivery records that the
-- caller knows, how the platform's records begin behind their version, ms at which the events are due, now in ms, head
-- of the record entry, then for each event: id, attempts, encoded record. Puts back events that are final. Replies with
-- -1 and does nothing where the platform has records that the caller does not know, else with the number of events that
-- were put back: those that the stream still has and that are not under way.
local function replay(keys, args) return put_back(keys, args, false) end

-- weir_replay_past is weir_replay for events that the history has: those that the stream does not have are put back too, and
-- are marked so.
local function replay_past(keys, args) return put_back(keys, args, true) end

----------------------------------------------------------------------------------------------------------------
-- The archive (archive.go)
--
-- One archive at a time copies both streams to the history, the one that has begun last. What it notes is refused once
-- another has begun.

local LANES = { events = true, records = true }

-- noted returns a field of what is noted, nil where it is longer than it can be.
local function noted(archive, field, most)
  return redis.call('HSTRLEN', archive, field) <= most and redis.call('HGET', archive, field) or nil
end

-- noted_id returns a stream id that is noted, '0-0' for none.
local function noted_id(archive, field)
  local id = noted(archive, field, 23)
  return id and readable(id) and id or '0-0'
end

-- epoch_of returns how often an archive has begun.
local function epoch_of(archive)
  local text = noted(archive, 'epoch', 15)
  return text and string.find(text, '^%d+$') and tonumber(text) or 0
end

-- behind returns the next id, ahead the one before.
local function behind(id)
  local ms, seq = split(id)
  return number(ms) .. '-' .. number(seq + 1)
end

local function ahead(id)
  local ms, seq = split(id)
  if seq > 0 then return number(ms) .. '-' .. number(seq - 1) end
  return number(math.max(0, ms - 1)) .. '-' .. number(ms > 0 and LAST_POSITION or 0)
end

-- weir_archive_begin: KEYS archive. Replies with the epoch of the archive that begins.
local function archive_begin(keys)
  expect(keys, 'archive')
  local epoch = epoch_of(keys[1]) + 1
  redis.call('HSET', keys[1], 'epoch', number(epoch), 'beat', number(server_ms()))
  return epoch
end

-- weir_archive_note: KEYS archive; ARGV epoch, ms up to when all that was appended is archived, or "" where that is as
-- before, then for each lane: its name, the id up to which it is archived, and the last id of a block that may be on its way
-- with the block's token, or "" twice. Replies with 1, and the last ids of both streams that were taken from the archive; with
-- 0 where a later one has begun, and nothing is noted.
local function archive_note(keys, args)
  expect(keys, 'archive')
  local archive = keys[1]
  local lanes = (#args - 2) / 4
  if lanes < 0 or lanes > 2 or lanes ~= math.floor(lanes) then wrong('there must be 2 arguments and then 4 for each lane') end
  local epoch = whole(args[1], 'the epoch', 1, LARGEST)
  local current = args[2] ~= '' and number(whole(args[2], 'up to when all is archived', 0, LATEST)) or nil
  local fields = { 'beat', number(server_ms()) }
  for i = 3, #args, 4 do
    local confirmed, last, token = args[i + 1], args[i + 2], bounded(args[i + 3], 'a token', MOST_TOKEN)
    if not LANES[args[i]] then wrong('a lane must be events or records') end
    if not readable(confirmed) then wrong('what is archived must be a stream id') end
    if last ~= '' and not readable(last) then wrong('the end of a block must be a stream id') end
    if (last == '') ~= (token == '') then wrong('a block must have an end and a token') end
    fields[#fields + 1], fields[#fields + 2] = args[i], confirmed
    fields[#fields + 1], fields[#fields + 2] = args[i] .. ':intent', last ~= '' and last .. ' ' .. token or ''
  end
  if epoch ~= epoch_of(archive) then return { 0 } end
  if current then fields[#fields + 1], fields[#fields + 2] = 'current', current end
  redis.call('HSET', archive, unpack(fields))
  return { 1, noted_id(archive, 'lost'), noted_id(archive, 'lost:records') }
end

----------------------------------------------------------------------------------------------------------------
-- Trimming (trim.go)

-- first_open returns the lowest id that waits, nil where none does. What is no id is forgotten; where there is more of
-- that than one call looks at, everything is still needed.
local function first_open(group)
  local ids = redis.call('ZRANGE', group.open, 0, 99)
  for _, id in ipairs(ids) do
    if readable(id) then return id end
    forget(group.due, group.open, group.attempts, id)
  end
  return #ids == 100 and '0-0' or nil
end

-- read_groups returns the groups with the lowest id that each still needs.
local function read_groups(events, retry)
  local groups = {}
  if info_of(events, 'groups') > MOST_GROUPS then
    wrong('the stream has more than ' .. MOST_GROUPS .. ' groups; those of no platform have to be destroyed first')
  end
  for _, flat in ipairs(redis.call('XINFO', 'GROUPS', events)) do
    local g = {}
    for i = 1, #flat, 2 do g[flat[i]] = flat[i + 1] end
    local group = { name = g['name'], last = g['last-delivered-id'], floor = g['last-delivered-id'] }
    group.due, group.open = retry .. group.name .. ':due', retry .. group.name .. ':open'
    group.attempts = retry .. group.name .. ':attempts'
    local pending = redis.call('XPENDING', events, group.name)
    if pending[1] > 0 and before(pending[2], group.floor) then group.floor = pending[2] end
    local waiting = first_open(group)
    if waiting and before(waiting, group.floor) then group.floor = number(split(waiting)) .. '-0' end
    groups[#groups + 1] = group
  end
  return groups
end

-- trim_to removes at most about limit entries below id, exactly up to it where those are all. Returns how many it
-- removed, and whether there are more. Redis removes whole nodes at little cost; what is left of one goes entry by
-- entry.
local function trim_to(key, id, limit)
  if id == '0-0' then return 0, false end
  local removed = redis.call('XTRIM', key, 'MINID', '~', id, 'LIMIT', limit)
  local rest, all = range(key, '-', '(' .. id, REST, MOST_READ)
  if not all and removed > 0 then return removed, true end
  if not all then
    local ms, seq = split(rest[#rest][1])
    id = number(ms) .. '-' .. number(seq + 1)
  end
  return #rest > 0 and removed + redis.call('XTRIM', key, 'MINID', '=', id) or removed, not all
end

-- take_back removes what a group still has to do among the doomed ids, most of those that wait, and returns those, in
-- no order.
local function take_back(events, group, doomed, last, most)
  local lost, seen = {}, {}
  local function lose(id)
    if not seen[id] then
      seen[id] = true
      lost[#lost + 1] = id
    end
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', group.open, '-inf', (split(last)), 'LIMIT', 0, most)) do
    local known = readable(id)
    if not known or not before(last, id) then
      if known then lose(id) end
      forget(group.due, group.open, group.attempts, id)
    end
  end
  for _, entry in ipairs(redis.call('XPENDING', events, group.name, '-', last, #doomed)) do
    lose(entry[1])
    redis.call('XACK', events, group.name, entry[1])
  end
  for _, id in ipairs(doomed) do
    if before(group.last, id) then lose(id) end
  end
  return lost
end

-- oldest_beyond returns the oldest entries that are beyond the ceilings, limit and about bytes of them at most; and
-- whether there are more. Those below hard are beyond one.
local function oldest_beyond(events, hard, max_events, limit, bytes)
  local old, all = {}, true
  if hard ~= '0-0' then old, all = range(events, '-', '(' .. hard, limit, bytes) end
  local excess = max_events > 0 and redis.call('XLEN', events) - max_events or 0
  if not all or excess <= #old then return old, not all end
  old = range(events, '-', '+', math.min(excess, limit), bytes)
  return old, #old < excess
end

-- trim_hard removes the oldest entries that are beyond the ceilings, whoever still needs them: at most limit of them by
-- the number of groups, each of which is asked what it has to do with them.
local function trim_hard(events, groups, hard, max_events, limit)
  local shares = math.max(1, #groups)
  local beyond, more = oldest_beyond(events, hard, max_events, math.ceil(limit / shares), MOST_READ / shares)
  local ids, entries, lost = {}, {}, {}
  for i, entry in ipairs(beyond) do
    ids[i], entries[entry[1]] = entry[1], entry[2][2]
  end
  if #ids == 0 then return 0, false, lost end
  local last = ids[#ids]
  for _, group in ipairs(groups) do
    for _, id in ipairs(take_back(events, group, ids, last, math.max(#ids, math.ceil(MOST_TRIMMED / shares)))) do
      lost[#lost + 1] = { group.name, id, entries[id] or '' }
    end
  end
  return redis.call('XTRIM', events, 'MINID', '=', behind(last)), more, lost
end

-- unarchived returns the id behind the last that the archive has confirmed of a stream, and the first entry from there on
-- whose id is below another one; nil where there is none.
local function unarchived(archive, stream, name, below)
  local from = behind(noted_id(archive, name))
  local entry = redis.call('XRANGE', stream, from, below, 'COUNT', 1)[1]
  return from, entry and entry[1]
end

-- note_lost notes the last id that may have been taken from the archive.
local function note_lost(archive, field, id)
  if before(noted_id(archive, field), id) then redis.call('HSET', archive, field, id) end
end

-- trim_records removes the delivery records below an id. With an archive those that it has not confirmed stay, unless their
-- events were lost too.
local function trim_records(deliveries, below, archive, archived, limit)
  if not archive then return trim_to(deliveries, below, limit) end
  local from, first = unarchived(archive, deliveries, 'records', '(' .. below)
  if archived then
    local lost = number(split(noted_id(archive, 'lost')) + 1) .. '-0'
    if before(from, lost) then from = lost end
    if before(from, below) then below = from end
  end
  local removed, more = trim_to(deliveries, below, limit)
  if first and before(first, below) then note_lost(archive, 'lost:records', ahead(below)) end
  return removed, more
end

-- trim_streams is weir_retain; archive is nil for callers that know of none.
local function trim_streams(keys, args, archive, archived)
  local events, deliveries = keys[1], keys[2]
  local _, passed = believed(keys[5])
  local keep_from = args[1] ~= '' and passed - whole(args[1], 'the age', 0, LATEST) or 0
  local hard_before = args[2] ~= '' and passed - whole(args[2], 'the age', 0, LATEST) or 0
  local max_events, limit = whole(args[3], 'the most events', 0, LARGEST), whole(args[4], 'the limit', 1, MOST_TRIMMED)
  buckets_in_use(keys[4], passed)
  buckets_in_use(keys[6], passed)
  if redis.call('EXISTS', events) == 0 then return { 0, 0, {} } end
  local groups = read_groups(events, keys[3])
  local floor, hard = number(math.max(0, keep_from)) .. '-0', number(math.max(0, hard_before)) .. '-0'
  for _, group in ipairs(groups) do
    if before(group.floor, floor) then floor = group.floor end
  end
  local from, unconfirmed
  if archive then from, unconfirmed = unarchived(archive, events, 'events', '+') end
  if archived then
    if before(from, floor) then floor = from end
    if before(from, hard) then hard = from end
  end
  local removed, more = trim_to(events, floor, limit)
  local taken, hard_more, lost = trim_hard(events, groups, hard, max_events, limit)

  local first = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
  if unconfirmed and not (first and not before(unconfirmed, first[1])) then
    note_lost(archive, 'lost', first and ahead(first[1]) or info_of(events, 'last-generated-id'))
  end
  local records_before = first and first[1] or number(math.max(0, keep_from)) .. '-0'
  local _, records_more = trim_records(deliveries, number(split(records_before)) .. '-0', archive, archived, limit)
  return { removed + taken, (more or hard_more or records_more) and 1 or 0, lost }
end

-- weir_retain: KEYS events, deliveries, prefix of the retry keys, dedup, clock, join, archive; ARGV age in ms beyond which
-- entries go unless a group needs them, age beyond which they go whoever needs them ("": no such ceiling), number of entries
-- above which the oldest go whoever needs them (0: no such ceiling), about how many entries to remove at most, and 1 where
-- what the archive has not confirmed goes beyond the last ceiling alone, else "". Replies with how many events were removed,
-- 1 where more remain to be removed, and a list of {group, id, entry} that were removed undelivered. Deduplication keys that
-- no window reaches any more go too, and identifiers that stand for nobody any more: those of a property that has fallen
-- silent. Whatever is taken from an archive is noted there.
local function retain(keys, args)
  expect(keys, 'events', 'deliveries', 'retry:', 'dedup', 'clock', 'join', 'archive')
  if args[5] ~= '' and args[5] ~= '1' then wrong('whether there is an archive must be 1 or empty') end
  local archived = args[5] == '1'
  return trim_streams(keys, args, (archived or epoch_of(keys[7]) > 0) and keys[7] or nil, archived)
end

-- weir_trim is weir_retain for callers that know of no archive: without the last key and argument.
local function trim(keys, args)
  expect(keys, 'events', 'deliveries', 'retry:', 'dedup', 'clock', 'join')
  return trim_streams(keys, args, nil, false)
end

----------------------------------------------------------------------------------------------------------------
-- Erasures (erasure.go, erase.go)

-- weir_requests: KEYS erasure:requests; ARGV count. Replies with a flat list of requests, the oldest first: id, text. What
-- is too long, or has other fields, is no request and is removed.
local function requests(keys, args)
  expect(keys, 'erasure:requests')
  local count = whole(args[1], 'the count', 1, MOST_EVENTS)
  local list, from, bytes = {}, '-', MOST_REQUESTS
  while count > 0 and bytes > 0 do
    local entry = redis.call('XRANGE', keys[1], from, '+', 'COUNT', 1)[1]
    if not entry then break end
    if #entry[2] == 2 and entry[2][1] == 'r' and #entry[2][2] <= MOST_REQUEST then
      list[#list + 1], list[#list + 2] = entry[1], entry[2][2]
    else
      redis.call('XDEL', keys[1], entry[1])
    end
    count, bytes, from = count - 1, bytes - weight(entry), '(' .. entry[1]
  end
  return list
end

-- forget_ids removes deduplication keys from all buckets: packed are their digests, one behind the other. A field that
-- somebody has filled beyond all measure goes as a whole: an erasure must not fail for its sake.
local function forget_ids(buckets, packed, left)
  for from = 1, #packed, 10 do
    local field, rest = string.sub(packed, from, from + 5), string.sub(packed, from + 6, from + 9)
    for _, bucket in pairs(buckets) do
      local size = redis.call('HSTRLEN', bucket.key, field)
      local records = size > 0 and size <= MOST_FIELD and redis.call('HGET', bucket.key, field)
      local at, after, _ = 1, size + 1, nil
      if records then _, _, at, after = find(records, rest, left) end
      if left.records < 0 then at, after = 1, size + 1 end
      if at == 1 and after > size and size > 0 then
        redis.call('HDEL', bucket.key, field)
      elseif at and size > 0 then
        redis.call('HSET', bucket.key, field, string.sub(records, 1, at - 1) .. string.sub(records, after))
      end
    end
  end
end

-- erasure_id is an argument that is the id of an erasure.
local function erasure_id(text)
  if not text or #text > 64 or not string.find(text, '^[%w-]+$') then wrong('an erasure must have an id of at most 64 letters') end
end

-- check_erased looks at the arguments of weir_erase, which has n events.
local function check_erased(args, n)
  local first = 2 + 4 * n
  local erasures = (#args - first + 1) / 2
  if erasures < 1 or erasures ~= math.floor(erasures) or erasures > MOST_ERASURES then
    wrong('there must be 4 arguments for each event and then 2 for each of at most ' .. MOST_ERASURES .. ' erasures')
  end
  for i = 2, first - 1, 4 do
    position(args[i], 'an event')
    if i > 2 and not before(args[i - 4], args[i]) then wrong('the events must be in order') end
    if #args[i + 1] ~= 9 then wrong('an announcement must have 9 bytes') end
    if #args[i + 2] % 10 ~= 0 or #args[i + 2] > 10 * MOST_DIGESTS then
      wrong('there must be at most ' .. MOST_DIGESTS .. ' digests of 10 bytes')
    end
    if #args[i + 3] == 0 or #args[i + 3] > MOST_ERASURES then wrong('an event must be of an erasure') end
    for at = 1, #args[i + 3] do
      local number = string.byte(args[i + 3], at)
      if number < 1 or number > erasures then wrong('an event must be of one of the erasures') end
    end
  end
  for i = first, #args, 2 do
    erasure_id(args[i])
    bounded(args[i + 1], 'the head of the announcement', MOST_RECORD)
  end
end

-- release takes events from a group, whether it holds them or they wait, and notes the platform where it may have got one
-- or may be getting it.
local function release(events, retry, name, ids, erasures_of, state)
  local noted = {}
  for id in pairs(pending_of(events, name, ids, ids[1], ids[#ids])) do
    for _, erasure in ipairs(erasures_of[id] or {}) do
      if not noted[erasure] and #name <= MOST_NAME then redis.call('HSET', state .. erasure, 'platform:' .. name, '1') end
      noted[erasure] = true
    end
  end
  redis.call('XACK', events, name, unpack(ids))
  redis.call('ZREM', retry .. name .. ':due', unpack(ids))
  redis.call('ZREM', retry .. name .. ':open', unpack(ids))
  redis.call('HDEL', retry .. name .. ':attempts', unpack(ids))
end

-- group_names returns the names of a stream's groups.
local function group_names(events)
  if info_of(events, 'groups') > MOST_GROUPS then
    wrong('the stream has more than ' .. MOST_GROUPS .. ' groups; those of no platform have to be destroyed first')
  end
  local names = {}
  if redis.call('EXISTS', events) == 0 then return names end
  for _, flat in ipairs(redis.call('XINFO', 'GROUPS', events)) do
    for i = 1, #flat, 2 do
      if flat[i] == 'name' then names[#names + 1] = flat[i + 1] end
    end
  end
  return names
end

-- there returns which of a call's events the stream still has, in order, and by the id the number of the argument where
-- each begins; and how many it has looked at.
local function there(events, args, count)
  local ids, at, bytes, seen = {}, {}, MOST_READ, 0
  for i = 2, 1 + 4 * count, 4 do
    if bytes <= 0 then break end
    local entry = redis.call('XRANGE', events, args[i], args[i])[1]
    if entry then
      bytes = bytes - weight(entry)
      ids[#ids + 1] = args[i]
      at[args[i]] = i
    end
    seen = seen + 1
  end
  return ids, at, seen
end

-- forget_orders removes what is known of orders on a platform, whose keys begin with a prefix.
local function forget_orders(prefix, orders)
  for from = 1, #orders, 1000 do
    local some = {}
    for i = from, math.min(from + 999, #orders) do some[#some + 1] = prefix .. orders[i] end
    redis.call('UNLINK', unpack(some))
  end
end

-- weir_erase: KEYS events, deliveries, retry:, dedup, erasure:state:; ARGV number of events, then for each, in order: id,
-- its part of an announcement, the digests of its deduplication keys one behind the other, and a byte for each erasure
-- that it is erased by, which one counted from 1; then for each erasure: id, head of its announcements. Removes events, all
-- that is kept of their ids, and what groups still have to do with them; announces them and counts them for their erasures.
-- Replies with how many of the events it has seen to, from the first; the others are to be asked for again.
--
-- The events go last: were this broken off, they would be found again.
local function erase(keys, args)
  expect(keys, 'events', 'deliveries', 'retry:', 'dedup', 'erasure:state:')
  local events, deliveries, retry, state = keys[1], keys[2], keys[3], keys[5]
  local n = whole(args[1], 'the number of events', 1, MOST_ERASED)
  check_erased(args, n)
  local names = group_names(events)
  local ids, at, seen = there(events, args, math.min(n, math.floor(MOST_SHARED / math.max(1, #names))))
  if #ids == 0 then return seen end
  local erasures_of, parts, orders, first = {}, {}, {}, 2 + 4 * n
  local buckets, left = buckets_in_use(keys[4], 0), allowance(MOST_DIGESTS * #ids, 'deduplication keys')
  for _, id in ipairs(ids) do
    local i = at[id]
    forget_ids(buckets, args[i + 2], left)
    -- Behind those of the event's id is that of its order, by which platforms' refunds are kept too.
    for from = 21, #args[i + 2], 10 do orders[#orders + 1] = order_name(string.sub(args[i + 2], from, from + 9)) end
    erasures_of[id] = {}
    for b = 1, #args[i + 3] do
      local erasure = first + 2 * (string.byte(args[i + 3], b) - 1)
      erasures_of[id][b] = args[erasure]
      parts[erasure] = parts[erasure] or { args[erasure + 1] }
      parts[erasure][#parts[erasure] + 1] = args[i + 1]
    end
  end
  for _, name in ipairs(names) do
    release(events, retry, name, ids, erasures_of, state)
    forget_orders(order_prefix(events, name), orders)
  end
  for i = first, #args, 2 do
    if parts[i] then
      redis.call('XADD', deliveries, '*', 'd', table.concat(parts[i]))
      redis.call('HINCRBY', state .. args[i], 'events', #parts[i] - 1)
    end
  end
  redis.call('XDEL', events, unpack(ids))
  return seen
end

-- check_replaced looks at the arguments of weir_replace_records, which removes k entries and adds r.
local function check_replaced(args, k, r)
  local erasures = (#args - 5 - k - r) / 3
  if erasures < 0 or erasures ~= math.floor(erasures) or erasures > MOST_COUNTED then
    wrong('there must be 5 arguments, one for each entry, and 3 for each of at most ' .. MOST_COUNTED .. ' erasures')
  end
  position(args[1], 'the last records')
  bounded(args[2], 'the platform', MOST_NAME)
  bounded(args[3], 'the beginning of the records', MOST_RECORD)
  local bytes = 0
  for i = 6, 5 + k do position(args[i], 'an entry') end
  for i = 6 + k, 5 + k + r do bytes = bytes + #bounded(args[i], 'a new entry', MOST_ENTRY) end
  if bytes > MOST_READ then wrong('the new entries must have at most ' .. MOST_READ .. ' bytes together') end
  for i = 6 + k + r, #args, 3 do
    erasure_id(args[i])
    whole(args[i + 1], 'the number of records', 0, LATEST)
    if args[i + 2] ~= '' and args[i + 2] ~= '1' then wrong('whether the platform may have got something must be 1 or empty') end
  end
end

-- weir_replace_records: KEYS deliveries, erasure:state:; ARGV id of the last delivery records that the caller knows,
-- platform, how its records begin behind their version, number of entries to remove, number of entries to add; the ids of
-- the ones, the records of the others; then for each erasure: id, how many records it removes, and 1 where the platform
-- may have got something of it, else "". Replies with -1 and does nothing where the platform has records that the caller
-- does not know, with -2 where one of the entries is gone; else with 1.
local function replace_records(keys, args)
  expect(keys, 'deliveries', 'erasure:state:')
  local deliveries, state = keys[1], keys[2]
  local k = whole(args[4], 'the number of entries to remove', 1, MOST_EVENTS)
  local r = whole(args[5], 'the number of entries to add', 0, MOST_EVENTS)
  check_replaced(args, k, r)
  local newer, all = range(deliveries, '(' .. args[1], '+', MOST_EVENTS, MOST_READ)
  if not all then return -1 end
  for _, entry in ipairs(newer) do
    if string.sub(entry[2][2], 3, 2 + #args[3]) == args[3] then return -1 end
  end
  local bytes = 2 * MOST_READ
  for i = 6, 5 + k do
    local entry = redis.call('XRANGE', deliveries, args[i], args[i])[1]
    if not entry then return -2 end
    bytes = bytes - weight(entry)
    if bytes < 0 and k > 1 then wrong('the entries to remove must have at most ' .. 2 * MOST_READ .. ' bytes together') end
  end
  for i = 6 + k, 5 + k + r do redis.call('XADD', deliveries, '*', 'd', args[i]) end
  for i = 6 + k + r, #args, 3 do
    redis.call('HINCRBY', state .. args[i], 'records', args[i + 1])
    if args[i + 2] == '1' then redis.call('HSET', state .. args[i], 'platform:' .. args[2], '1') end
  end
  redis.call('XDEL', deliveries, unpack(args, 6, 5 + k))
  return 1
end

-- weir_hide: KEYS erasure:open, erasure:hidden, erasure:state:, clock; ARGV for each erasure its id, and the ms in which it
-- stood in the ledger. Notes that there is nothing of them any more. One that has got a further part since stays open.
-- Replies with how many were noted.
local function hide(keys, args)
  expect(keys, 'erasure:open', 'erasure:hidden', 'erasure:state:', 'clock')
  if listed(args, 0, 2, MOST_EVENTS) == 0 then wrong('there must be an erasure') end
  for i = 1, #args, 2 do
    erasure_id(args[i])
    time(args[i + 1], 'when it stood in the ledger')
  end
  local now, noted = number(believed(keys[4])), 0
  for i = 1, #args, 2 do
    local since = redis.call('ZSCORE', keys[1], args[i])
    if since and tonumber(since) == tonumber(args[i + 1]) then
      redis.call('ZADD', keys[2], now, args[i])
      redis.call('HSET', keys[3] .. args[i], 'hidden', now)
      redis.call('ZREM', keys[1], args[i])
      noted = noted + 1
    end
  end
  return noted
end

----------------------------------------------------------------------------------------------------------------
-- Counts (counts.go)

-- has_place says whether a member of a group has a place in a hash of counts, and gives it one while there are fewer than most.
local function has_place(key, group, member, most)
  if redis.pcall('HEXISTS', key, member) == 1 then return true end
  local taken = redis.pcall('HINCRBY', key, group, 0)
  if type(taken) ~= 'number' or taken >= most then return false end
  redis.pcall('HINCRBY', key, group, 1)
  redis.pcall('HINCRBY', key, member, 0)
  return true
end

-- weir_count: KEYS counts:slot:SLOT or counts:hour:HOUR; ARGV the ms that it lives for, then for each counter: its field, what is
-- added, the field that counts the members of its group, "" where it has no bound, the field of which a member is known, the
-- most members, and the field that is added to where it has no place. Senders make up members, and several collectors add: so it
-- is here that they are bounded. What is no number, as somebody with the password may have written, is passed over.
local function count(keys, args)
  local own = string.match(keys[1] or '', ':(counts:slot:%d%d)$') or string.match(keys[1] or '', ':(counts:hour:%d%d%d)$')
  expect(keys, own or 'counts:slot:00')
  local kept = whole(args[1], 'how long counts live', 1, LONGEST)
  if listed(args, 1, 6, MOST_EVENTS) == 0 then wrong('there must be a counter') end
  for i = 2, #args, 6 do
    whole(args[i + 1], 'what is added', 1, LARGEST)
    whole(args[i + 4], 'the most members', 0, MOST_EVENTS)
    for _, field in ipairs({ i, i + 2, i + 3, i + 5 }) do bounded(args[field], 'a field', MOST_COUNTER) end
  end
  for i = 2, #args, 6 do
    local group, field = args[i + 2], args[i]
    if group ~= '' and not has_place(keys[1], group, args[i + 3], tonumber(args[i + 4])) then field = args[i + 5] end
    redis.pcall('HINCRBY', keys[1], field, args[i + 1])
  end
  redis.call('PEXPIRE', keys[1], number(kept))
  return 1
end

redis.register_function('weir_append', append)
redis.register_function('weir_count', count)
redis.register_function('weir_allow', allow)
redis.register_function('weir_seal', seal)
redis.register_function('weir_replay', replay)
redis.register_function('weir_replay_past', replay_past)
-- What frees memory or closes what is under way must go on when memory is full.
redis.register_function { function_name = 'weir_look', callback = look, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_due', callback = due, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_settle', callback = settle, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_take', callback = take, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_lease', callback = lease, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_conclude', callback = conclude, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_refund', callback = refund, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_ensure_group', callback = ensure_group, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_destroy_group', callback = destroy_group, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_drop', callback = drop, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_trim', callback = trim, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_retain', callback = retain, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_archive_begin', callback = archive_begin, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_archive_note', callback = archive_note, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_requests', callback = requests, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_erase', callback = erase, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_replace_records', callback = replace_records, flags = { 'allow-oom' } }
redis.register_function { function_name = 'weir_hide', callback = hide, flags = { 'allow-oom' } }

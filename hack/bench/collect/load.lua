-- What wrk sends: purchases of 560 bytes with user, context and two items, each with ids that no other has.
-- Arguments: the path, a prefix of 8 hexadecimal digits that no other run has, and how many events a request carries
-- (0: one, not in a batch). What is constant is put together once: the generator shares the machine's processors.

local ID, ORDER = '{{ID}}', '{{ORDER}}'

local PURCHASE = '{"event":"purchase","event_id":"' .. ID .. '","client_id":"1234567890.1700000000",' ..
  '"user":{"email":"jane.roe@example.com","phone":"+14155550123","first_name":"Jane"},' ..
  '"data":{"value":49.9,"currency":"EUR","order_id":"' .. ORDER .. '","contents":[' ..
  '{"id":"SKU-1","quantity":1,"price":29.9},{"id":"SKU-2","quantity":2,"price":10}]},' ..
  '"context":{"page_url":"https://shop.example.com/thanks?utm_source=google&utm_medium=cpc&utm_campaign=spring-sale-26",' ..
  '"user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101","ip":"203.0.113.7"}}'

local parts, ids, orders = {}, {}, {}
local prefix, serial = nil, 0

local function add(text) parts[#parts + 1] = text end

local function add_purchase()
  local at, before_order = PURCHASE:find(ID, 1, true), PURCHASE:find(ORDER, 1, true)
  add(PURCHASE:sub(1, at - 1))
  add('')
  ids[#ids + 1] = #parts
  add(PURCHASE:sub(at + #ID, before_order - 1))
  add('')
  orders[#orders + 1] = #parts
  add(PURCHASE:sub(before_order + #ORDER))
end

function init(args)
  prefix = args[2]
  local batch = tonumber(args[3])
  add('')
  if batch > 0 then add('{"events":[') end
  add_purchase()
  for _ = 2, batch do
    add(',')
    add_purchase()
  end
  if batch > 0 then add(']}') end
  local body = request():match('\r\n\r\n(.*)$') or table.concat(parts)
  parts[1] = 'POST ' .. args[1] .. ' HTTP/1.1\r\nHost: collect.example.com\r\nContent-Type: application/json\r\n' ..
    'Content-Length: ' .. #body .. '\r\n\r\n'
end

function request()
  for i = 1, #ids do
    serial = serial + 1
    local number = string.format('%012x', serial)
    parts[ids[i]] = prefix .. '-0000-7000-8000-' .. number
    parts[orders[i]] = prefix:sub(1, 4) .. number
  end
  return table.concat(parts)
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('\nresult {"requests":%d,"micros":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end

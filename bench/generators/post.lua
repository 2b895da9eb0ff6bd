-- Posts the body in a file, or the lines of a file in turn, and closes with one line of JSON.
-- wrk ... -s bench/generators/post.lua URL -- FILE body|lines [content-encoding [method]]

local function read(name)
  local file = assert(io.open(name, "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes
end

function init(args)
  wrk.method = args[4] or "POST"
  wrk.headers["Content-Type"] = "application/json"
  if args[3] and args[3] ~= "identity" then wrk.headers["Content-Encoding"] = args[3] end
  if args[2] ~= "lines" then
    wrk.body = read(args[1])
    return
  end
  local requests, at = {}, 0
  for line in read(args[1]):gmatch("[^\n]+") do
    requests[#requests + 1] = wrk.format(nil, nil, nil, line)
  end
  function request()
    at = at % #requests + 1
    return requests[at]
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"refused":%d,"failed":%d,"closedLoopMs":{"p50":%.3f,"p99":%.3f}}\n',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
  ))
end

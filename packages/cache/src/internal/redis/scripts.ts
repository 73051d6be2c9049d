/** What has to be one step, as Lua. All of them have one key. */

/** Takes an entry out if it is of this recording, and tells how many there were. */
export const evict = `
if redis.call('GETRANGE', KEYS[1], 0, 31) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
`

/** Writes over a value of this SHA-1, for so many milliseconds if any, and tells whether it was still there. */
export const replace = `
local value = redis.call('GET', KEYS[1])
if not value or redis.sha1hex(value) ~= ARGV[1] then return 0 end
if ARGV[3] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1
`

/** Takes out a value of this SHA-1, and tells how many there were. */
export const discard = `
local value = redis.call('GET', KEYS[1])
if not value or redis.sha1hex(value) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
`

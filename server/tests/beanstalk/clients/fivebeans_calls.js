// Calls everything that fivebeans has: node fivebeans_calls.js HOST PORT
'use strict'

const assert = require('assert')
const Fivebeans = require('fivebeans').client

const [host, port] = process.argv.slice(2)

// A connection whose calls are promises: of an answer's one word, of its words, or of a refusal's.
function connect() {
  const client = new Fivebeans(host, Number(port))
  const call = (command, ...given) =>
    new Promise((resolve, reject) =>
      client[command](...given, (refusal, ...answer) =>
        refusal ? reject(new Error(refusal)) : resolve(answer.length > 1 ? answer : answer[0])
      )
    )
  const closed = new Promise(resolve => client.on('close', resolve))
  return new Promise((resolve, reject) => {
    client.on('error', reject)
    client.on('connect', () => resolve({ call, closed, end: () => client.end() }))
    client.connect()
  })
}

async function tube(name) {
  const connection = await connect()
  assert.strictEqual(await connection.call('use', name), name)
  assert.strictEqual(await connection.call('watch', name), '2')
  assert.strictEqual(await connection.call('ignore', 'default'), '1')
  return connection
}

const refused = (promise, word) => assert.rejects(promise, { message: word })

const facts = {
  async 'a job is put, reserved and deleted'() {
    const { call, end } = await tube('life')
    const id = await call('put', 5, 0, 60, 'hello')
    const [reserved, body] = await call('reserve')
    assert.deepStrictEqual([reserved, body.toString()], [id, 'hello'])
    await call('touch', id)
    await call('release', id, 3, 0)
    assert.strictEqual((await call('reserve_with_timeout', 5))[0], id)
    await call('destroy', id)
    await refused(call('destroy', id), 'NOT_FOUND')
    await refused(call('touch', id), 'NOT_FOUND')
    await refused(call('release', id, 3, 0), 'NOT_FOUND')
    await refused(call('reserve_with_timeout', 0), 'TIMED_OUT')
    end()
  },

  async 'a body is any bytes up to the limit'() {
    const { call, end } = await tube('binary')
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    for (const body of [Buffer.alloc(0), Buffer.from('\r\n'), all, Buffer.alloc(1 << 20, 7)]) {
      const id = await call('put', 0, 0, 60, body)
      const [reserved, received] = await call('reserve')
      assert.strictEqual(reserved, id)
      assert(body.equals(received), `${body.length} bytes`)
      await call('destroy', id)
    }
    await refused(call('put', 0, 0, 60, Buffer.alloc((1 << 20) + 1)), 'JOB_TOO_BIG')
    assert.strictEqual(await call('list_tube_used'), 'binary')
    end()
  },

  async 'a thousand puts are on their way at once, and a thousand jobs come back in order'() {
    const { call, end } = await tube('many')
    const bodies = Array.from({ length: 1000 }, (_, number) => `job ${number}`)
    const ids = await Promise.all(bodies.map(body => call('put', 1, 0, 60, body)))
    assert.strictEqual(new Set(ids).size, 1000)
    assert.deepStrictEqual(ids, [...ids].sort((one, other) => one - other))
    const jobs = await Promise.all(ids.map(() => call('reserve')))
    assert.deepStrictEqual(jobs.map(([id, body]) => [id, body.toString()]), ids.map((id, at) => [id, bodies[at]]))
    await Promise.all(ids.map(id => call('destroy', id)))
    const stats = await call('stats_tube', 'many')
    assert.deepStrictEqual([stats['total-jobs'], stats['cmd-delete'], stats['current-jobs-ready']], [1000, 1000, 0])
    end()
  },

  async 'buried and delayed jobs are shown and kicked'() {
    const { call, end } = await tube('graves')
    for (const command of ['peek_ready', 'peek_delayed', 'peek_buried']) await refused(call(command), 'NOT_FOUND')
    const delayed = await call('put', 1, 100, 60, 'delayed')
    const buried = await call('put', 1, 0, 60, 'buried')
    await refused(call('bury', buried, 9), 'NOT_FOUND')
    await call('reserve')
    await call('bury', buried, 9)
    const ready = await call('put', 1, 0, 60, 'ready')
    assert.deepStrictEqual((await call('peek_ready'))[0], ready)
    assert.deepStrictEqual((await call('peek_delayed'))[0], delayed)
    assert.deepStrictEqual((await call('peek_buried'))[0], buried)
    assert.strictEqual((await call('peek', buried))[1].toString(), 'buried')
    await refused(call('peek', 999999999), 'NOT_FOUND')
    const stats = await call('stats_job', buried)
    assert.deepStrictEqual([stats.id, stats.state, stats.pri, stats.buries], [Number(buried), 'buried', 9, 1])
    assert.strictEqual(await call('kick', 10), '1')
    await call('kick_job', delayed)
    await refused(call('kick_job', delayed), 'NOT_FOUND')
    assert.strictEqual(await call('kick', 10), '0')
    end()
  },

  async 'a paused tube hands nothing out until its time is over'() {
    const { call, end } = await tube('resting')
    await call('put', 1, 0, 60, 'x')
    await call('pause_tube', 'resting', 1)
    await refused(call('reserve_with_timeout', 0), 'TIMED_OUT')
    await call('reserve_with_timeout', 5)
    await refused(call('pause_tube', 'nowhere', 1), 'NOT_FOUND')
    end()
  },

  async 'a holder is warned'() {
    const { call, end } = await tube('short')
    const id = await call('put', 1, 0, 1, 'x')
    await call('reserve')
    await refused(call('reserve'), 'DEADLINE_SOON')
    await call('destroy', id)
    end()
  },

  async 'tubes and counters are listed'() {
    const { call, end } = await tube('listed')
    assert.deepStrictEqual(await call('list_tubes_watched'), ['listed'])
    const tubes = await call('list_tubes')
    assert(tubes.includes('default') && tubes.includes('listed'))
    await refused(call('ignore', 'listed'), 'NOT_IGNORED')
    await refused(call('use', '-no'), 'BAD_FORMAT')
    await refused(call('stats_tube', 'nowhere'), 'NOT_FOUND')
    await refused(call('stats_job', 999999999), 'NOT_FOUND')
    const [before, after] = [await call('stats'), await call('stats')]
    assert.strictEqual(after['cmd-stats'], before['cmd-stats'] + 1)
    assert.strictEqual(after['max-job-size'], 1 << 20)
    end()
  },

  async 'what was reserved is free when its connection quits'() {
    const [one, other] = [await tube('left'), await tube('left')]
    const id = await one.call('put', 1, 0, 60, 'x')
    await one.call('reserve')
    const waiting = other.call('reserve')
    one.call('quit')
    await one.closed
    assert.strictEqual((await waiting)[0], id)
    other.end()
  },
}

async function main() {
  for (const [fact, holds] of Object.entries(facts)) {
    await holds()
    console.log(fact)
  }
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})

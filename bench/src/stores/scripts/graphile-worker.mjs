// graphile-worker: batches by its SQL function add_jobs, worked by its runner with 32 jobs at a time.
import pg from 'pg'
import { Logger, run, runMigrations } from 'graphile-worker'

const ADD = `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
  SELECT json_populate_recordset(NULL::graphile_worker.job_spec, $1::json)))`

export async function open (url) {
  const pgPool = new pg.Pool({ connectionString: url, max: 50 })
  const logger = new Logger(() => () => {})
  await runMigrations({ pgPool, logger })
  const rounds = new Map()
  let next = 0
  const taskList = { order: async () => {} }
  const runner = await run({ pgPool, taskList, logger, concurrency: 32, pollInterval: 1000, noHandleSignals: true })
  runner.events.on('job:complete', ({ job }) => {
    const round = rounds.get(job.payload.round)
    if (--round.left === 0) round.done()
  })
  const add = (bodies, round, run_at) => {
    const specs = bodies.map(body => ({ identifier: 'order', payload: { round, body }, run_at }))
    return pgPool.query({ name: 'add', text: ADD, values: [JSON.stringify(specs)] })
  }
  return {
    schedules: bodies => add(bodies, -1, new Date(Date.now() + 86_400_000 * (1 + Math.random() * 29))),
    async lives (bodies) {
      const round = next++
      const worked = new Promise(done => rounds.set(round, { left: bodies.length, done }))
      await add(bodies, round, undefined)
      await worked
      rounds.delete(round)
    }
  }
}

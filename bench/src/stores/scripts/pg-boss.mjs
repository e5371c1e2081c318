// pg-boss: batches by insert, fetch and complete, which are what its own workers call.
import PgBoss from 'pg-boss'

const QUEUE = 'orders'

export async function open (url) {
  const boss = new PgBoss({ connectionString: url, max: 16, supervise: false, schedule: false })
  boss.on('error', error => { throw error })
  await boss.start()
  await boss.createQueue(QUEUE)
  const insert = (bodies, startAfter) => boss.insert(bodies.map(body => ({ name: QUEUE, data: { body }, startAfter })))
  return {
    schedules: bodies => insert(bodies, new Date(Date.now() + 86_400_000 * (1 + Math.random() * 29))),
    async lives (bodies) {
      await insert(bodies)
      let left = bodies.length
      while (left > 0) {
        const jobs = await boss.fetch(QUEUE, { batchSize: left })
        if (jobs.length === 0) continue
        await boss.complete(QUEUE, jobs.map(job => job.id))
        left -= jobs.length
      }
    }
  }
}

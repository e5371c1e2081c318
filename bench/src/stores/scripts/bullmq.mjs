// BullMQ: batches by addBulk, worked by one worker with 64 jobs at a time; what is done stays, as it does by default.
import { Queue, Worker } from 'bullmq'

export async function open (url) {
  const { hostname: host, port } = new URL(url)
  const connection = { host, port: Number(port), maxRetriesPerRequest: null }
  const queue = new Queue('orders', { connection })
  const rounds = new Map()
  let next = 0
  const worker = new Worker('orders', async () => {}, { connection, concurrency: 64 })
  worker.on('completed', job => {
    const round = rounds.get(job.data.round)
    if (--round.left === 0) round.done()
  })
  await queue.waitUntilReady()
  await worker.waitUntilReady()
  const far = () => Math.floor(86_400_000 * (1 + Math.random() * 29))
  return {
    schedules: bodies => queue.addBulk(bodies.map(body => ({ name: 'order', data: { body }, opts: { delay: far() } }))),
    async lives (bodies) {
      const round = next++
      const worked = new Promise(done => rounds.set(round, { left: bodies.length, done }))
      await queue.addBulk(bodies.map(body => ({ name: 'order', data: { round, body } })))
      await worked
      rounds.delete(round)
    }
  }
}

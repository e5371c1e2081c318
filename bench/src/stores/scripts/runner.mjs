// Runs one peer: `node runner.mjs NAME URL`. It reads lines such as `lives 30000` and answers with how many there were,
// the seconds that it took, and the p50 and p99 of a call in milliseconds.
import { createInterface } from 'node:readline'

const BATCH = 256
const CALLERS = 8
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

const body = () => Array.from({ length: 200 }, () => LETTERS[Math.floor(Math.random() * LETTERS.length)]).join('')
const bodies = Array.from({ length: 1024 }, body)
const batch = () => Array.from({ length: BATCH }, () => bodies[Math.floor(Math.random() * bodies.length)])

// All callers together do the same round over and over until there were so many tasks.
async function run (tasks, round) {
  const calls = []
  let begun = 0
  const began = performance.now()
  const caller = async () => {
    while (begun < tasks) {
      begun += BATCH
      const from = performance.now()
      await round(batch())
      calls.push(performance.now() - from)
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  const seconds = (performance.now() - began) / 1000
  calls.sort((a, b) => a - b)
  const at = share => calls[Math.min(calls.length - 1, Math.floor(calls.length * share))]
  return [calls.length * BATCH, seconds, at(0.5), at(0.99)]
}

const [name, url] = process.argv.slice(2)
const { open } = await import(`./${name}.mjs`)
const peer = await open(url)
console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const [work, tasks] = line.split(' ')
  console.log((await run(Number(tasks), peer[work])).join(' '))
}

import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PeerJob } from './support/peer-job.ts'
import { appeared } from './support/processes.ts'
import { Stage } from './support/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.set()
})

afterAll(() => stage.clear())

/** Runs a script that touches the flag, and lets no output through before. */
async function whileServerIsAway(flag: string, script: string): Promise<PeerJob> {
  stage.peer.failing.add('output')
  const job = stage.peer.addJob({ script })
  await appeared(flag)
  stage.peer.failing.delete('output')
  await stage.peer.until(() => job.completion !== undefined)
  return job
}

test('output arrives while the script still runs', async () => {
  const flag = stage.file('seen')
  const job = stage.peer.addJob({ script: `echo first; while [ ! -e ${flag} ]; do sleep 0.05; done; echo second` })
  await stage.peer.until(() => job.output === 'first\n')
  expect(job.completion).toBeUndefined()
  writeFileSync(flag, '')
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.output).toBe('first\nsecond\n')
})

test('output keeps its order over many calls', async () => {
  const job = await stage.peer.run({ script: 'for i in 1 2 3 4 5 6; do seq $((i * 9000)) $((i * 9000 + 8999)); done' })
  const expected = Array.from({ length: 54_000 }, (_, index) => `${index + 9000}\n`).join('')
  expect(job.output).toBe(expected)
  expect(job.chunks.length).toBeGreaterThan(4)
})

test('a character that is written in two parts arrives whole', async () => {
  const job = await stage.peer.run({ script: String.raw`printf '\360\237'; sleep 0.4; printf '\230\200'` })
  expect(job.output).toBe('😀')
})

test('bytes that are no UTF-8 become replacement characters', async () => {
  const job = await stage.peer.run({ script: String.raw`printf 'a\377b\303'` })
  expect(job.output).toBe('a\uFFFDb\uFFFD')
})

test('a script that writes to both streams in turn costs few calls', async () => {
  const flag = stage.file('both-written')
  const writing = 'for i in $(seq 3000); do echo out; echo err >&2; done'
  const job = await whileServerIsAway(flag, `${writing}; touch ${flag}`)
  expect(job.outputOf('stdout')).toBe('out\n'.repeat(3000))
  expect(job.outputOf('stderr')).toBe('err\n'.repeat(3000))
  expect(job.chunks.length).toBeLessThan(10)
})

test('of 10 MB that the server is too slow for, the beginning and the end are kept', async () => {
  const flag = stage.file('written')
  const job = await whileServerIsAway(flag, `seq 1000000 2249999; touch ${flag}`)
  const [, head, droppedBytes, tail] = /^(.*)\n\[… (\d+) bytes dropped …\]\n(.*)$/s.exec(job.output) ?? []
  const all = Array.from({ length: 1_250_000 }, (_, index) => `${index + 1_000_000}\n`).join('')
  expect(head!.length).toBeGreaterThanOrEqual(256 * 1024)
  expect(head!.length).toBeLessThanOrEqual(384 * 1024)
  expect(tail!.length).toBe(768 * 1024)
  expect(head).toBe(all.slice(0, head!.length))
  expect(tail).toBe(all.slice(-tail!.length))
  expect(head!.length + Number(droppedBytes) + tail!.length).toBe(all.length)
})

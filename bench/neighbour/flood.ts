import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Answers, Flood } from './flood-process.ts'

const program = new URL('flood-process.ts', import.meta.url)

/** Floods a platform from a process of its own, until the work is done. */
export async function flooded<Result>(flood: Flood, work: () => Promise<Result>) {
  const child = fork(program, { execArgv: [] })
  const exit = once(child, 'exit')
  try {
    child.send(flood)
    const result = await work()
    child.send('stop')
    const [answers]: Answers[] = await once(child, 'message')
    return { result, answers: answers ?? {} }
  } finally {
    child.kill()
    await exit
  }
}

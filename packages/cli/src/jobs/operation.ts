import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from '../api/client.ts'
import { exitCodes } from '../exit.ts'
import type { PrintOptions } from '../print/show.ts'
import { oneLine } from '../print/text.ts'
import { say, write, writeJson } from '../print/write.ts'
import { getJob, type Job } from './job.ts'

const pauseMs = 300

/**
 * Waits for an operation and prints its steps as they end, or with `json` only the ended job. Returns the exit code.
 */
export async function followOperation(api: Api, id: string, { json }: PrintOptions): Promise<number> {
  const printedSteps = new Set<string>()
  for (;;) {
    const job = await getJob(api, id)
    if (!json) printSteps(job, printedSteps)
    if (job.completedAt !== undefined) {
      const outcome = job.result?.output ?? job.statusReason ?? ''
      await (json ? writeJson(job) : write(`${job.type} ${job.status}: ${oneLine(outcome)}\n`))
      return job.status === 'Completed' ? exitCodes.ok : exitCodes.refused
    }
    await sleep(pauseMs)
  }
}

function printSteps({ steps = [] }: Job, printedSteps: Set<string>): void {
  for (const { name, status, message } of steps) {
    if (status === 'Pending' || status === 'Running' || printedSteps.has(name)) continue
    printedSteps.add(name)
    say(`${name}: ${status}${message === undefined ? '' : ` (${message})`}`)
  }
}

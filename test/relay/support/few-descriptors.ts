/** Runs scripts with twelve free file descriptors, and prints their output. */
import { closeSync, openSync } from 'node:fs'
import { localExecutor } from '../../../packages/relay/src/executor/local.ts'

const [folder = ''] = process.argv.slice(2)
const executor = localExecutor(folder)

async function run(jobId: string): Promise<void> {
  const task = { jobId, nodeName: 'here', script: `echo ${jobId}`, onSpawned: () => {} }
  const { exitCode } = executor.start({ ...task, onOutput: (_, bytes) => void process.stdout.write(bytes) })
  await exitCode
}

const descriptors: number[] = []
try {
  for (;;) descriptors.push(openSync('/dev/null', 'r'))
} catch {
  for (const descriptor of descriptors.slice(-12)) closeSync(descriptor)
}
for (let index = 1; index < 12; index++) await run(`job_${index}`)

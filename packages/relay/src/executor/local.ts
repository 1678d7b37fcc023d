import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeFolder } from '../files.ts'
import { failedStart, pipeOutput } from './child.ts'
import { type Executor, type Running, scriptEnvironment, type Task } from './executor.ts'
import { FifoPair } from './fifo.ts'

// Waits for a line, so that the relay records the group leader before the script runs. If the relay is killed before,
// the pipe closes and the shell exits. `$0` is the prefix of error messages of `exec`.
const waitForStart = 'read -r PLAT_START <&3 || exit 1; unset PLAT_START; exec 3<&-; exec "$@"'

/** Runs scripts on this machine, each in a new folder under `parent` that is removed afterwards. */
export function localExecutor(parent: string): Executor {
  return { start: (task) => startUnder(parent, task), isOnline: () => Promise.resolve(true) }
}

function startUnder(parent: string, task: Task): Running {
  let folder: string | undefined
  const clear = () => folder && removeFolder(folder)
  try {
    folder = mkdtempSync(join(parent, `${task.jobId}-`))
    const running = start(folder, task)
    return { ...running, ended: running.ended.finally(clear) }
  } catch (error) {
    clear()
    return failedStart(error, task)
  }
}

function start(folder: string, task: Task): Running {
  const script = join(folder, 'script')
  const workFolder = join(folder, 'work')
  writeFileSync(script, task.script, { mode: 0o700 })
  mkdirSync(workFolder, { mode: 0o700 })
  const fifos = new FifoPair(folder)
  try {
    const [command, args] = task.script.startsWith('#!') ? [script, []] : ['sh', [script]]
    const child = spawn('sh', ['-c', waitForStart, 'The script could not be started', command, ...args], {
      cwd: workFolder,
      env: scriptEnvironment(task),
      detached: true,
      stdio: ['ignore', fifos.writers.stdout, fifos.writers.stderr, 'pipe'],
    })
    const running = pipeOutput(child, fifos.pipes, task)
    release(child)
    return running
  } finally {
    fifos.releaseWriters()
  }
}

function release({ stdio: [, , , startPipe] }: ChildProcess): void {
  // If the shell has exited without reading the line, its exit code shows the cause.
  startPipe?.on('error', () => {})
  if (startPipe && 'end' in startPipe) startPipe.end('\n')
}

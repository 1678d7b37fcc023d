import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeFolder } from '../files.ts'
import { failedStart, pipeOutput } from './child.ts'
import { type Executor, type Running, scriptEnvironment, type Task } from './executor.ts'
import { FifoPair } from './fifo.ts'

/**
 * Waits for a line, so that nothing of a script has run before it is noted which process leads it: a relay that is
 * killed in between leaves nobody behind, as its end closes the gate. What cannot be executed is said in the name of `$0`.
 */
const gate = 'read -r PLAT_GATE <&3 || exit 1; unset PLAT_GATE; exec 3<&-; exec "$@"'

/** Runs scripts on this machine, each in a fresh folder under `parent` that is removed afterwards. */
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
    const child = spawn('sh', ['-c', gate, 'The script could not be started', command, ...args], {
      cwd: workFolder,
      env: scriptEnvironment(task),
      detached: true,
      stdio: ['ignore', fifos.writers.stdout, fifos.writers.stderr, 'pipe'],
    })
    const running = pipeOutput(child, fifos.pipes, task)
    openGate(child)
    return running
  } finally {
    fifos.releaseWriters()
  }
}

function openGate({ stdio: [, , , passage] }: ChildProcess): void {
  // Whoever does not come for the line has ended, which shows in the exit code.
  passage?.on('error', () => {})
  if (passage && 'end' in passage) passage.end('\n')
}

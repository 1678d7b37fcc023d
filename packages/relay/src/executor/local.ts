import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeFolder } from '../files.ts'
import { failedStart, follow } from './child.ts'
import { type Executor, type Running, scriptEnvironment, type Task } from './executor.ts'
import { FifoPair } from './fifo.ts'

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
    const child = spawn(command, args, {
      cwd: workFolder,
      env: scriptEnvironment(task),
      detached: true,
      stdio: ['ignore', fifos.writers.stdout, fifos.writers.stderr],
    })
    return follow(child, fifos.pipes, task)
  } finally {
    fifos.releaseWriters()
  }
}

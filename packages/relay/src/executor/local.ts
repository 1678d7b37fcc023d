import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { lchownSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { reportFailedStart, pipeOutput } from './child.ts'
import { interpreterOf, scriptUmask, scriptVariables } from './environment.ts'
import { type Executor, probeLimits, type RunningScript, type Task } from './executor.ts'
import { FifoPair } from './fifo.ts'
import { relayUser, type ScriptUser, startAs } from './user.ts'
import { ensureWorkFolder, removeWorkFolder } from './work-folder.ts'

const run = promisify(execFile)

// The shell waits for a line, so that the relay records the group leader before the script runs. If the relay is killed
// before that, the pipe closes and the shell exits. `$0` is the prefix of error messages of `exec`.
const waitScript = `read -r PLAT_START <&3 || exit 1; exec 3<&-; umask ${scriptUmask}; exec env -i "$@"`

/** Runs scripts on this machine, each in a new folder under `parent` that is removed afterwards. */
export function localExecutor(parent: string, user: ScriptUser = relayUser()): Executor {
  return {
    start: (task) => startUnder(parent, user, task),
    isOnline: () => Promise.resolve(true),
    probe: async (command) => {
      const env = { PATH: process.env['PATH'] }
      const result = run('sh', ['-c', command], { ...probeLimits, env, cwd: '/' })
      return result.then(
        ({ stdout }) => stdout,
        () => '',
      )
    },
  }
}

function startUnder(parent: string, user: ScriptUser, task: Task): RunningScript {
  let folder: string | undefined
  const clear = async () => {
    if (folder) await removeWorkFolder(folder)
  }
  try {
    ensureWorkFolder(parent, user)
    folder = mkdtempSync(join(parent, `${task.jobId}-`))
    const runningScript = start(folder, user, task)
    return { ...runningScript, exitCode: clearAfter(runningScript.exitCode, clear) }
  } catch (error) {
    void clear()
    return reportFailedStart(error, task)
  }
}

async function clearAfter(exitCode: Promise<number>, clear: () => Promise<void>): Promise<number> {
  const code = await exitCode
  await clear()
  return code
}

function start(folder: string, user: ScriptUser, task: Task): RunningScript {
  const script = join(folder, 'script')
  const workFolder = join(folder, 'work')
  writeFileSync(script, task.script, { mode: 0o700, flag: 'wx' })
  mkdirSync(workFolder, { mode: 0o700 })
  const fifos = new FifoPair(dirname(folder), user)
  try {
    if (user.isOther) for (const path of [script, workFolder, folder]) lchownSync(path, user.uid, user.gid)
    const variables = { HOME: user.home, USER: user.name, LOGNAME: user.name, ...scriptVariables(task) }
    const words = [
      ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      ...interpreterOf(task.script),
    ]
    const command = ['sh', '-c', waitScript, 'The script could not be started', ...words, script]
    const { program, args, options } = startAs(user, workFolder, command)
    const child = spawn(program, args, {
      ...options,
      // The user of the script can read the environment of this shell.
      env: { PATH: process.env['PATH'] },
      detached: true,
      stdio: ['ignore', fifos.writers.stdout, fifos.writers.stderr, 'pipe'],
    })
    const runningScript = pipeOutput(child, fifos.pipes, task)
    releaseScript(child)
    return runningScript
  } finally {
    fifos.releaseWriters()
  }
}

function releaseScript({ stdio: [, , , startPipe] }: ChildProcess): void {
  // If the shell has exited without reading the line, its exit code shows the cause.
  startPipe?.on('error', () => {})
  if (startPipe && 'end' in startPipe) startPipe.end('\n')
}

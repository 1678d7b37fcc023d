import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { Duplex, type Readable } from 'node:stream'
import { promisify } from 'node:util'
import { type Command, systemPath } from './launcher.ts'
import { RuntimeError } from './port.ts'

const run = promisify(execFile)

/** A process that never outlives the platform, even if the platform is killed. */
export interface WatchdogChild {
  stdout: Readable
  stderr: Readable
  /** Settles with the exit reason once the process has ended. */
  exited: Promise<string>
  /** Settles once the whole process group has ended and its container is removed. */
  cleanedUp: Promise<void>
  terminate: () => void
  /** Kills the process, its group and its container immediately. */
  kill: () => void
}

/** Time limits for the watchdog and for the cleanup by this process. */
const watchdogMs = 3000
const cleanUpMs = 20_000

/**
 * Starts a command in its own process group with a watchdog: a shell that waits until a pipe closes. Only this process
 * holds the other end of the pipe, so the pipe closes when the instance ends or must be killed, or when this process is
 * killed. The watchdog then cleans up and kills the group. The command replaces the shell that started both, so that it
 * receives signals.
 */
export function spawnWithWatchdog({ args, env, cwd, userId, cleanUpArgs = [] }: Command): WatchdogChild {
  const commands = [...(cleanUpArgs.length > 0 ? [cleanUpArgs.map(quote).join(' ')] : []), 'kill -KILL 0']
  const watchdog = `(read -r line <&3; ${commands.join('; ')}) >/dev/null 2>&1 &`
  // Shells set these variables; the command must receive only its own environment.
  const script = `ulimit -c 0; ${watchdog} unset PWD OLDPWD SHLVL; exec "$@" 3<&-`
  const child = spawn('/bin/sh', ['-c', script, 'sh', ...args], {
    cwd,
    env,
    detached: true,
    ...(userId !== undefined && { uid: userId, gid: userId }),
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  return watch(child, cleanUpArgs)
}

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

function watch(child: ChildProcess, cleanUpArgs: readonly string[]): WatchdogChild {
  const exited = new Promise<string>((resolve) => {
    child.on('exit', (code, name) =>
      resolve(name === null ? `The process ended with exit code ${code}.` : `The process was ended by ${name}.`),
    )
    child.on('error', (error) => resolve(`The process could not be started: ${error.message}.`))
  })
  const closed = new Promise<void>((resolve) => {
    child.on('close', () => resolve())
    child.on('error', () => child.pid === undefined && resolve())
  })
  // If the machine lacks resources for another process, the streams are missing.
  const [, stdout, stderr, watchdogPipe] = child.pid === undefined ? [] : child.stdio
  if (!(stdout instanceof Duplex && stderr instanceof Duplex && watchdogPipe instanceof Duplex)) {
    throw new RuntimeError('init_failed', 'The process could not be started.')
  }
  // The process at the other end may be killed at any time.
  watchdogPipe.on('error', () => {}).resume()
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const signal = (sign: number, name: NodeJS.Signals) => {
    if (child.pid !== undefined && !hasEnded()) trySignal(sign * child.pid, name)
  }
  // Without its watchdog, an instance would outlive the platform.
  watchdogPipe.on('close', () => signal(-1, 'SIGKILL'))

  const kill = () => {
    watchdogPipe.end()
    setTimeout(() => signal(-1, 'SIGKILL'), watchdogMs).unref()
  }
  const clean = async () => {
    await exited
    watchdogPipe.end()
    // The watchdog does the same, unless it was killed itself.
    await runCleanUp(cleanUpArgs)
    await closed
  }
  const cleanedUp = clean()
  return { stdout, stderr, exited, cleanedUp, terminate: () => signal(1, 'SIGTERM'), kill }
}

/** Runs the cleanup command. Ignores errors, because it fails if there is nothing to clean up. */
async function runCleanUp([program, ...args]: readonly string[]): Promise<void> {
  if (program === undefined) return
  await run(program, args, { env: { PATH: systemPath }, timeout: cleanUpMs }).catch(() => undefined)
}

function trySignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has just ended.
  }
}

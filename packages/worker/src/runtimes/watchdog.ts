import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { Duplex, type Readable } from 'node:stream'
import { promisify } from 'node:util'
import { type Command, systemPath } from './launcher.ts'
import { RuntimeError } from './port.ts'

const run = promisify(execFile)

/** A process that never outlives the platform, however that ends. */
export interface WatchdogChild {
  stdout: Readable
  stderr: Readable
  /** Settles when the process itself has ended, with how. */
  exited: Promise<string>
  /** Settles when all of its group has ended, and nothing of it is left. */
  gone: Promise<void>
  /** Asks it to end. */
  terminate: () => void
  /** Ends it, its whole group and its container at once. */
  kill: () => void
}

/** The guard has so long for its work, and what this process does itself so long. */
const guardMs = 3000
const cleanUpMs = 20_000

/**
 * Starts a command in a process group of its own, beside a guard: a shell that waits for the end of a pipe whose other end
 * only this process holds. When that closes, because the instance has ended or shall, or because this process was killed, the
 * guard cleans up and ends the group. The command takes the place of the shell that started both, so that signals reach it.
 */
export function spawnWithWatchdog({ args, env, cwd, cleanUp = [] }: Command): WatchdogChild {
  const steps = [...(cleanUp.length > 0 ? [cleanUp.map(quoted).join(' ')] : []), 'kill -KILL 0']
  const guard = `(read -r line <&3; ${steps.join('; ')}) >/dev/null 2>&1 &`
  // Shells set these variables by themselves; the command shall see what it was given.
  const script = `ulimit -c 0; ${guard} unset PWD OLDPWD SHLVL; exec "$@" 3<&-`
  const child = spawn('/bin/sh', ['-c', script, 'sh', ...args], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  return watch(child, cleanUp)
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

function watch(child: ChildProcess, cleanUp: readonly string[]): WatchdogChild {
  const exited = new Promise<string>((resolve) => {
    child.on('exit', (code, name) => resolve(name === null ? `It ended with exit code ${code}.` : `${name} ended it.`))
    child.on('error', (error) => resolve(`It could not be started: ${error.message}.`))
  })
  const closed = new Promise<void>((resolve) => {
    child.on('close', () => resolve())
    child.on('error', () => child.pid === undefined && resolve())
  })
  // Where the machine has no room for another process there is nothing of it.
  const [, stdout, stderr, lifeline] = child.pid === undefined ? [] : child.stdio
  if (!(stdout instanceof Duplex && stderr instanceof Duplex && lifeline instanceof Duplex)) {
    throw new RuntimeError('init_failed', 'This machine could not start another process.')
  }
  // Whoever holds its other end may be killed in the middle of anything.
  lifeline.on('error', () => {}).resume()
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const signal = (to: number, name: NodeJS.Signals) => {
    if (child.pid !== undefined && !hasEnded()) trySignal(to * child.pid, name)
  }
  // Without its guard an instance would not end with the platform.
  lifeline.on('close', () => signal(-1, 'SIGKILL'))

  const kill = () => {
    lifeline.end()
    setTimeout(() => signal(-1, 'SIGKILL'), guardMs).unref()
  }
  const clean = async () => {
    await exited
    lifeline.end()
    // The guard does it too, unless it was ended itself.
    await attempt(cleanUp)
    await closed
  }
  const gone = clean()
  return { stdout, stderr, exited, gone, terminate: () => signal(1, 'SIGTERM'), kill }
}

/** Runs a command that fails where there is nothing to do. */
async function attempt([program, ...args]: readonly string[]): Promise<void> {
  if (program === undefined) return
  await run(program, args, { env: { PATH: systemPath }, timeout: cleanUpMs }).catch(() => undefined)
}

function trySignal(to: number, name: NodeJS.Signals): void {
  try {
    process.kill(to, name)
  } catch {
    // It has just ended.
  }
}

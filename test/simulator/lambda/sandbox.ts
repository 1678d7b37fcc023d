import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Program } from './code.ts'
import { failedOutcome, type Outcome, Runtime, serveRuntimeApi, type Work } from './runtime-api.ts'

/** A process of a function: one invocation at a time, frozen in between. */
export interface Sandbox {
  readonly pid: number | undefined
  readonly isIdle: boolean
  readonly hasEnded: boolean
  initialise: (limitMs: number) => Promise<boolean>
  run: (work: Work, limitSeconds: number) => Promise<Outcome>
  end: () => Promise<void>
}

export interface SandboxOptions {
  program: Program
  environment: Readonly<Record<string, string>>
  onOutput: (text: string) => void
}

export async function startSandbox({ program, environment, onOutput }: SandboxOptions): Promise<Sandbox> {
  const signal = (name: NodeJS.Signals) => () => signalGroup(child, name)
  const runtime = new Runtime(signal('SIGSTOP'), signal('SIGCONT'))
  const api = await serveRuntimeApi(runtime)
  const env = { ...program.environment, ...environment, AWS_LAMBDA_RUNTIME_API: api.address }
  // A process group, so that its children end with it.
  const child = spawn(process.execPath, program.arguments, {
    cwd: program.folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', onOutput)
  let hasEnded = false
  const waitForExit = async () => {
    const outcomeOf = await exitOf(child)
    hasEnded = true
    api.close()
    runtime.end(outcomeOf)
  }
  const ended = waitForExit()
  const end = async () => {
    signalGroup(child, 'SIGKILL')
    await ended
  }
  return {
    pid: child.pid,
    get isIdle() {
      return runtime.isIdle && !hasEnded
    },
    get hasEnded() {
      return hasEnded
    },
    initialise: (limitMs) => withinLimit(runtime.whenReady, limitMs, () => false),
    run: (work, limitSeconds) => {
      const timeOut = async () => {
        runtime.end((id) => timedOut(id, limitSeconds))
        await end()
        return timedOut(work.id, limitSeconds)
      }
      return withinLimit(runtime.run(work), limitSeconds * 1000, timeOut)
    },
    end,
  }
}

function signalGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, signal)
  } catch {
    // The process has just ended.
  }
}

async function withinLimit<Result>(work: Promise<Result>, limitMs: number, onLimit: () => Result | Promise<Result>) {
  const { promise, resolve } = Promise.withResolvers<Result>()
  const timer = setTimeout(() => resolve(onLimit()), limitMs)
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}

const timedOut = (id: string, seconds: number): Outcome =>
  failedOutcome('Sandbox.Timedout', `RequestId: ${id} Error: Task timed out after ${seconds.toFixed(2)} seconds`)

async function exitOf(child: ChildProcess): Promise<(id: string) => Outcome> {
  try {
    const [code, signal]: (number | string | null)[] = await once(child, 'exit')
    const reason = signal === null ? `exit status ${code}` : `signal: ${signal}`
    const text = code === 0 ? 'Runtime exited without providing a reason' : `Runtime exited with error: ${reason}`
    return (id) => failedOutcome('Runtime.ExitError', `RequestId: ${id} Error: ${text}`)
  } catch (error) {
    return (id) => failedOutcome('Runtime.InvalidEntrypoint', `RequestId: ${id} Error: ${String(error)}`)
  }
}

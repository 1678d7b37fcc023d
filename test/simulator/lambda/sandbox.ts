import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Program } from './code.ts'
import { failedOutcome, type Outcome, Runtime, serveRuntimeApi, type Work } from './runtime-api.ts'

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

export interface SandboxOptions {
  program: Program
  environment: Readonly<Record<string, string>>
  onOutput: (text: string) => void
}

/** Starts a process of a function. The process runs one invocation at a time and is frozen between invocations. */
export async function startSandbox({ program, environment, onOutput }: SandboxOptions) {
  const signal = (name: NodeJS.Signals) => () => signalGroup(child, name)
  const runtime = new Runtime(signal('SIGSTOP'), signal('SIGCONT'))
  const api = await serveRuntimeApi(runtime)
  const env = { ...program.environment, ...environment, AWS_LAMBDA_RUNTIME_API: api.host }
  // `detached` creates a process group, so that signals also reach the children of the process.
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
    void api[Symbol.asyncDispose]()
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
    initialise: (limitMs: number) => withinLimit(runtime.whenReady, limitMs, () => false),
    run: (work: Work, limitSeconds: number) => {
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
    // The process has already ended.
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

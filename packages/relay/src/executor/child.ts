import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stream } from '../backlog.ts'
import { messageOf } from '../log.ts'
import { countMembers, signalGroup, stampOf } from '../process-group.ts'
import { findTextProblem } from './environment.ts'
import { endedProcessesLine, graceMs, type RunningScript, settleMs, type StopMode, type Task } from './executor.ts'

const drainMs = 1000
const pollMs = 50
const newline = 0x0a
const cannotExecuteCode = 126
const notFoundCode = 127

export type Pipes = Record<Stream, Readable>

/** A graceful stop of a child. The default sends SIGTERM to its process group. */
export type GracefulStop = { request: () => void; killAfterMs: number }

/**
 * Forwards the output of a child that leads its own process group. `exitCode` resolves when the child, its group and
 * its output have ended.
 */
export function pipeOutput(child: ChildProcess, pipes: Pipes, task: Task, gracefulStop?: GracefulStop): RunningScript {
  const { pid } = child
  const output = forward(pipes, task)
  // Without a process id the child did not start; its `error` event has the cause.
  if (pid === undefined) return { exitCode: awaitExitCode(child, output, task), stop: () => false }
  const stamp = stampOf(pid)
  if (stamp !== undefined) task.onSpawned({ pid, stamp })
  const group = new Group(pid, gracefulStop ?? { request: () => signalGroup(pid, 'SIGTERM'), killAfterMs: graceMs })
  return { exitCode: awaitExitCode(child, output, task, group), stop: (mode) => group.stop(mode) }
}

/** Writes the cause of a failed start to the output. The script ends with the exit code that a shell returns. */
export function reportFailedStart(cause: unknown, task: Task): RunningScript {
  return { exitCode: Promise.resolve(reportFailure(cause, task)), stop: () => false }
}

class Group {
  readonly #id: number
  readonly #gracefulStop: GracefulStop
  #killAtMs: number | undefined
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(id: number, gracefulStop: GracefulStop) {
    this.#id = id
    this.#gracefulStop = gracefulStop
  }

  /** A repeated graceful stop sends no signal, because a second SIGTERM would interrupt the script's cleanup. */
  stop(mode: StopMode): boolean {
    if (this.#isOver) return false
    if (mode === 'force') this.#kill()
    else if (this.#killAtMs === undefined) {
      this.#killAtMs = performance.now() + this.#gracefulStop.killAfterMs
      this.#timer = setTimeout(() => this.#kill(), this.#gracefulStop.killAfterMs)
      this.#gracefulStop.request()
    }
    return true
  }

  /** Ends the group after its leader. Returns the number of processes left behind, or 0 if the script was stopped. */
  async end(): Promise<number> {
    const isStopped = this.#killAtMs !== undefined
    this.#isOver = !isStopped
    await this.#untilEmpty(this.#killAtMs ?? performance.now() + settleMs)
    this.#isOver = true
    const leftCount = isStopped ? 0 : countMembers(this.#id)
    clearTimeout(this.#timer)
    this.#kill()
    return leftCount
  }

  async #untilEmpty(limitMs: number): Promise<void> {
    while (performance.now() < limitMs && countMembers(this.#id) > 0) await sleep(pollMs)
  }

  #kill(): void {
    signalGroup(this.#id, 'SIGKILL')
  }
}

async function awaitExitCode(child: ChildProcess, output: ForwardedOutput, task: Task, group?: Group): Promise<number> {
  const code = await exitCodeOf(child).catch((error: unknown) => reportFailure(error, task))
  const leftCount = (await group?.end()) ?? 0
  await output.end()
  const problem = code === 0 ? undefined : findTextProblem(task.script)
  if (problem) writeLine(task, output.isLineOpen, `[${problem}]`)
  if (leftCount > 0) writeLine(task, !problem && output.isLineOpen, endedProcessesLine(leftCount))
  return code
}

function exitCodeOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal!]))
    child.once('error', reject)
  })
}

/** The output of a child. `isLineOpen` is true if the last line does not end with a newline. */
type ForwardedOutput = { readonly isLineOpen: boolean; end: () => Promise<void> }

function forward(pipes: Pipes, task: Task): ForwardedOutput {
  let lastByte = newline
  const closings = (['stdout', 'stderr'] as const).map((stream) => {
    const pipe = pipes[stream]
    pipe.on('data', (bytes: Buffer) => {
      lastByte = bytes.at(-1) ?? lastByte
      task.onOutput(stream, bytes)
    })
    pipe.on('error', () => {})
    return new Promise((resolve) => pipe.once('close', resolve))
  })
  return {
    get isLineOpen() {
      return lastByte !== newline
    },
    // A descendant outside of the group may keep the pipes open forever, so its output is ignored after `drainMs`.
    async end() {
      const drainLimit = new AbortController()
      await Promise.race([Promise.all(closings), sleep(drainMs, undefined, { signal: drainLimit.signal })])
      drainLimit.abort()
      pipes.stdout.destroy()
      pipes.stderr.destroy()
      await Promise.all(closings)
    },
  }
}

function writeLine(task: Task, isLineOpen: boolean, text: string): void {
  task.onOutput('stderr', Buffer.from(`${isLineOpen ? '\n' : ''}${text}\n`))
}

function reportFailure(error: unknown, task: Task): number {
  writeLine(task, false, `The script could not be started: ${messageOf(error)}`)
  return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? notFoundCode : cannotExecuteCode
}

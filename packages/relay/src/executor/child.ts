import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stream } from '../backlog.ts'
import { messageOf } from '../log.ts'
import { signalGroup, stampOf } from '../process-group.ts'
import type { Running, Task } from './executor.ts'

const drainMs = 1000
const cannotExecute = 126
const notFound = 127

export type Pipes = Record<Stream, Readable>

/** How to stop a child gracefully. The default sends SIGTERM to its process group. */
export type GracefulStop = { request: () => void; killAfterMs: number }

/**
 * Forwards the output of a child that leads its own process group. `ended` resolves when the child, its group and its
 * output have ended.
 */
export function pipeOutput(child: ChildProcess, pipes: Pipes, task: Task, gracefulStop?: GracefulStop): Running {
  const { pid } = child
  // Without a process id the child did not start; its `error` event has the cause.
  if (pid === undefined) return { ended: outcome(child, pipes, task), stop: () => false }
  const stamp = stampOf(pid)
  if (stamp !== undefined) task.onSpawned({ pid, stamp })
  const { request, killAfterMs } = gracefulStop ?? { request: () => signalGroup(pid, 'SIGTERM'), killAfterMs: 5000 }
  return {
    ended: outcome(child, pipes, task),
    stop: (mode) => {
      if (child.exitCode !== null || child.signalCode !== null) return false
      if (mode === 'graceful') request()
      const timer = setTimeout(() => signalGroup(pid, 'SIGKILL'), mode === 'graceful' ? killAfterMs : 0)
      child.once('exit', () => clearTimeout(timer))
      return true
    },
  }
}

/**
 * A script that could not be started. Writes the cause to its output and ends with the exit code that a shell returns.
 */
export function failedStart(cause: unknown, task: Task): Running {
  return { ended: Promise.resolve(failureCode(cause, task)), stop: () => false }
}

async function outcome(child: ChildProcess, pipes: Pipes, task: Task): Promise<number> {
  const drained = Promise.all([
    forwardOutput(pipes.stdout, 'stdout', task),
    forwardOutput(pipes.stderr, 'stderr', task),
  ])
  try {
    return await exitCodeOf(child)
  } catch (error) {
    return failureCode(error, task)
  } finally {
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
    await drain(drained, pipes)
  }
}

function exitCodeOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal!]))
    child.once('error', reject)
  })
}

// A descendant outside of the group may keep the pipes open forever, so its further output is ignored.
async function drain(drained: Promise<unknown>, pipes: Pipes): Promise<void> {
  const limit = new AbortController()
  await Promise.race([drained, sleep(drainMs, undefined, { signal: limit.signal })])
  limit.abort()
  pipes.stdout.destroy()
  pipes.stderr.destroy()
  await drained
}

function forwardOutput(pipe: Readable, stream: Stream, task: Task): Promise<void> {
  const decoder = new StringDecoder('utf8')
  pipe.on('data', (chunk: Buffer) => task.onOutput(stream, decoder.write(chunk)))
  pipe.on('error', () => {})
  return new Promise((resolve) => {
    pipe.once('close', () => {
      task.onOutput(stream, decoder.end())
      resolve()
    })
  })
}

function failureCode(error: unknown, task: Task): number {
  task.onOutput('stderr', `The script could not be started: ${messageOf(error)}\n`)
  return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? notFound : cannotExecute
}

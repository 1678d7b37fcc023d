import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/** A program in a process of its own; disposing kills it. */
export interface Program extends AsyncDisposable {
  child: ChildProcess
  /** Lines of standard output and standard error so far. */
  lines: string[]
  /** Resolves with the rest of the first line that begins so; rejects when the program ends without one. */
  says: (beginning: string) => Promise<string>
  /** Resolves with the exit code, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals | null>
}

/** Runs a file of the project with Node, in an environment of `PLAT_…` names only, but for what makes it start faster. */
export function runProgram(
  file: string,
  options: { arguments?: string[]; environment?: Record<string, string> },
): Program {
  const child = spawn(process.execPath, [file, ...(options.arguments ?? [])], {
    cwd: projectDir,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
  const output = new EventEmitter()
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      lines.push(line)
      output.emit('line')
    })
  }

  const says = async (beginning: string): Promise<string> => {
    for (;;) {
      const found = lines.find((line) => line.startsWith(beginning))
      if (found !== undefined) return found.slice(beginning.length)
      const hasEnded = await Promise.race([once(output, 'line').then(() => false), ended.then(() => true)])
      if (hasEnded) throw new Error(`The program ended without "${beginning}":\n${lines.join('\n')}`)
    }
  }
  const dispose = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return { child, lines, says, ended, [Symbol.asyncDispose]: dispose }
}

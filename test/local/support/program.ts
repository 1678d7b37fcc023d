import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

export interface Program extends AsyncDisposable {
  child: ChildProcess
  /** Lines of standard output and standard error so far. */
  lines: string[]
  /** Resolves with the rest of the first line that has the prefix; rejects if the program ends without one. */
  waitForLine: (prefix: string) => Promise<string>
  /** Resolves with the exit code, or with the signal that ended the program. */
  exit: Promise<number | NodeJS.Signals | null>
}

export function runProgram(
  file: string,
  options: { arguments?: string[]; environment?: Record<string, string>; isOnTerminal?: boolean },
): Program {
  const command = [process.execPath, file, ...(options.arguments ?? [])]
  const [program, ...parameters] = options.isOnTerminal
    ? ['script', '-qefc', `exec ${command.join(' ')}`, '/dev/null']
    : command
  const child = spawn(program ?? '', parameters, {
    cwd: projectDir,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const exit = once(child, 'close').then(([code, signal]) => code ?? signal)
  const output = new EventEmitter()
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      lines.push(line)
      output.emit('line')
    })
  }

  const waitForLine = async (prefix: string): Promise<string> => {
    for (;;) {
      const match = lines.find((line) => line.startsWith(prefix))
      if (match !== undefined) return match.slice(prefix.length)
      const hasEnded = await Promise.race([once(output, 'line').then(() => false), exit.then(() => true)])
      if (hasEnded) throw new Error(`The program ended without "${prefix}":\n${lines.join('\n')}`)
    }
  }
  const dispose = async () => {
    child.kill('SIGKILL')
    await exit
  }
  return { child, lines, waitForLine, exit, [Symbol.asyncDispose]: dispose }
}

type ServerKind = 'dynamodb' | 'sqs' | 'secrets' | 'registry' | 'platform'

export async function runServer(kind: ServerKind, dataDir: string, functionsDir = '') {
  const program = runProgram('test/local/support/serve.ts', { arguments: [kind, dataDir, functionsDir] })
  return { ...program, address: JSON.parse(await program.waitForLine('Ready at ')) }
}

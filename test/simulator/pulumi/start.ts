import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { installComponents } from '../graph/components.ts'
import { Answer, type Command } from './command.ts'

type Surroundings = Pick<Command, 'environment' | 'files'>

/** A sandbox where deployment commands run for real, except the engine and AWS. */
export interface Sandbox extends AsyncDisposable {
  run: (script: string, args: readonly string[], surroundings?: Partial<Surroundings>) => Promise<Answer>
}

/** The reason why this machine cannot have one, or undefined. */
export function sandboxUnavailableReason(): string | undefined {
  try {
    execFileSync('unshare', ['-Urn', 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'pipe' })
    return undefined
  } catch (error) {
    return `no network namespaces: ${error instanceof Error ? error.message.split('\n').at(-1) : String(error)}`
  }
}

/** Starts a sandbox; commands run one after the other. It ends with this process. */
export async function startSandbox(): Promise<Sandbox> {
  await installComponents()
  const folder = await mkdtemp(join(tmpdir(), 'deployment-'))
  const inside = [process.execPath, join(import.meta.dirname, 'sandbox.ts'), folder]
  const child = spawn('unshare', ['-Urn', ...inside], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next()
    if (done === true) throw new Error('The sandbox has ended.')
    return value
  }
  await next()
  return {
    run: async (script, args, { environment = {}, files = {} } = {}) => {
      const command: Command = { script, args: [...args], environment, files }
      child.stdin.write(`${JSON.stringify(command)}\n`)
      return Answer.parse(JSON.parse(await next()))
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end()
      if (child.exitCode === null) await once(child, 'close')
    },
  }
}

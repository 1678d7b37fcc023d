import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import * as z from 'zod'
import { installComponents } from '../graph/components.ts'

/** A command of the project: `npm run SCRIPT -- ARGS`, or SST itself if the script is `sst`. */
export const Command = z.object({
  script: z.string(),
  args: z.array(z.string()),
  environment: z.record(z.string(), z.string()),
  /** Additional files in the project folder, by name. */
  files: z.record(z.string(), z.string()),
})
export type Command = z.infer<typeof Command>

export const CommandResult = z.object({
  exitCode: z.number(),
  output: z.string(),
  requests: z.array(z.string()),
  operations: z.array(
    z.object({
      command: z.string(),
      stage: z.string(),
      isSuccessful: z.boolean(),
      changes: z.record(z.string(), z.number()),
    }),
  ),
})
export type CommandResult = z.infer<typeof CommandResult>

type CommandContext = Pick<Command, 'environment' | 'files'>

export interface Sandbox extends AsyncDisposable {
  run: (script: string, args: readonly string[], context?: Partial<CommandContext>) => Promise<CommandResult>
}

export function sandboxUnavailableReason(): string | undefined {
  try {
    execFileSync('unshare', ['-Urn', 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'pipe' })
    return undefined
  } catch (error) {
    return `no network namespaces: ${error instanceof Error ? error.message.split('\n').at(-1) : String(error)}`
  }
}

/** Starts a sandbox, which ends with this process. Call `run` only after the previous command has ended. */
export async function startSandbox(): Promise<Sandbox> {
  await installComponents()
  const folder = await mkdtemp(join(tmpdir(), 'deployment-'))
  const sandboxCommand = [process.execPath, join(import.meta.dirname, 'sandbox.ts'), folder]
  const child = spawn('unshare', ['-Urn', ...sandboxCommand], { stdio: ['pipe', 'pipe', 'inherit'] })
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
      return CommandResult.parse(JSON.parse(await next()))
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end()
      if (child.exitCode === null) await once(child, 'close')
    },
  }
}

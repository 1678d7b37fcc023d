import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

const isInstalled = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))

/** Returns the reason for skipping tests that need these programs, or an empty text if all are installed. */
export function missingPrograms(...programs: string[]): string {
  const missing = programs.filter((program) => !isInstalled(program))
  return missing.length === 0 ? '' : ` (skipped: this machine has no ${missing.join(', ')})`
}

export async function outputOf(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await execute(program, args, { maxBuffer: 16 * 1024 * 1024 })
  return stdout
}
